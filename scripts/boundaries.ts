// Every file of the repository against scripts/boundary-rules.ts.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { filesBelow } from './repository.ts'
import { violationsIn } from './boundary-rules.ts'

export const checkBoundaries = (root: string): string[] =>
  ['bin', 'src', 'test', 'bench', 'scripts']
    .flatMap((folder) => filesBelow(path.join(root, folder), root))
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => violationsIn(file, fs.readFileSync(path.join(root, file), 'utf8')))
