// The `muster` that tests start: the sources as they are, in a few files instead of hundreds, which saves a third of every
// start. Transcripts and test/process/real-processes.test.ts start it from the sources, as a stranger does.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { build, type Plugin } from 'esbuild'
import { root } from './repository.ts'

/**
 * A module that imports `node:http` makes Node load its WebSocket client, for the sake of the names that it exports: a fifth of
 * the start of an agent. One that requires it does not.
 */
const requiredHttp: Plugin = {
  name: 'required-http',
  setup({ onResolve, onLoad }) {
    const namespace = 'required'
    onResolve({ filter: /^node:https?$/ }, ({ path: name, namespace: from }) =>
      from === namespace ? { path: name, external: true } : { path: name, namespace },
    )
    onLoad({ filter: /./, namespace }, ({ path: name }) => ({ contents: `module.exports = require('${name}')` }))
  },
}

export const buildTestCommand = (folder: string): Promise<string> => buildCommand(root, folder)

/** Of the sources in a folder, which may be those of another release. Returns the command. */
export const buildCommand = async (sources: string, folder: string): Promise<string> => {
  // As deep as the sources that look for files of the repository beside them.
  const out = path.join(folder, 'bundled', 'lib', 'muster', 'bin')
  await build({
    absWorkingDir: sources,
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
    plugins: [requiredHttp],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'\nconst require = __createRequire(import.meta.url)",
    },
  })
  fs.symlinkSync(path.join(root, 'packaging'), path.join(folder, 'bundled', 'packaging'))
  fs.writeFileSync(path.join(folder, 'bundled', 'package.json'), '{"type":"module"}\n')
  const command = path.join(folder, 'bundled', 'muster')
  const node = path.join(root, 'node_modules/.bin/node')
  const script = `#!/bin/sh\nexec "${node}" --disable-warning=ExperimentalWarning "${path.join(out, 'muster.js')}" "$@"\n`
  fs.writeFileSync(command, script, { mode: 0o755 })
  return command
}
