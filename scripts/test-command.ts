// The `muster` that tests start planes and agents with: the sources as they are, in a few files instead of hundreds, which
// saves a third of every start. Commands of operators are run from the sources (test/process/run-muster.ts).

import * as fs from 'node:fs'
import * as path from 'node:path'
import { build } from 'esbuild'
import { root } from './repository.ts'

/** Returns the command. */
export const buildTestCommand = async (folder: string): Promise<string> => {
  const out = path.join(folder, 'bundled', 'bin')
  await build({
    absWorkingDir: root,
    entryPoints: ['bin/muster.ts'],
    outdir: out,
    bundle: true,
    // What a command does not need is not loaded for it, as in the sources.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    logLevel: 'warning',
    external: ['pg-native'],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(import.meta.url)",
    },
  })
  fs.writeFileSync(path.join(folder, 'bundled', 'package.json'), '{"type":"module"}\n')
  const command = path.join(folder, 'bundled', 'muster')
  const node = path.join(root, 'node_modules/.bin/node')
  const script = `#!/bin/sh\nexec "${node}" --disable-warning=ExperimentalWarning "${path.join(out, 'muster.js')}" "$@"\n`
  fs.writeFileSync(command, script, { mode: 0o755 })
  return command
}
