// A plane whose log goes into a file, whole: what a long test counts in it must not be cut off.

import * as fs from 'node:fs'
import * as path from 'node:path'
import type { Scope } from './cleanup.ts'
import type { Json } from './operator-call.ts'
import type { PlaneOptions } from './start-plane.ts'
import { tempFolder } from './temp-folder.ts'

export type PlaneLog = {
  /** For the plane that is to write it. */
  readonly options: Pick<PlaneOptions, 'args' | 'env' | 'wrapper'>
  lines(): readonly Json[]
}

export const openPlaneLog = (t: Scope, level: string): PlaneLog => {
  const file = path.join(tempFolder(t), 'plane.log')
  fs.writeFileSync(file, '')
  return {
    options: {
      args: ['--log-level', level],
      env: { PLANE_LOG: file },
      wrapper: ['sh', '-c', 'exec "$@" 2>>"$PLANE_LOG"', 'sh'],
    },
    lines: () =>
      fs
        .readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line): Json => JSON.parse(line)),
  }
}
