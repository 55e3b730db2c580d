// The `muster` that tests start: the sources as they are, in a few files instead of hundreds, which saves a third of every
// start. test/process/real-processes.test.ts and the first transcript start it from the sources, as a stranger does.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { build, type Plugin } from 'esbuild'
import { programsBeside } from '../test/process/child.ts'
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

/** V8 gives a process that lives so long this much anyway. Collecting it while it starts is a tenth of a start. */
const wholeYoungGeneration = ['--min-semi-space-size=16']

/** Programs of tests that are started so often that it counts; they share the files of the command (`testProgram`). */
const testPrograms = ['test/process/failpoint-agent.ts']

export const buildTestCommand = (folder: string): Promise<string> => buildCommand(root, folder, testPrograms)

/** Of the sources in a folder, which may be those of another release. Returns the command. */
export const buildCommand = async (
  sources: string,
  folder: string,
  programs: readonly string[] = [],
): Promise<string> => {
  const command = path.join(folder, 'bundled', 'muster')
  const out = programsBeside(command)
  await build({
    absWorkingDir: sources,
    entryPoints: ['bin/muster.ts', ...threadsIn(sources), ...programs].map((file) => ({
      in: file,
      out: path.basename(file, '.ts'),
    })),
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
  const node = path.join(root, 'node_modules/.bin/node')
  const flags = ['--disable-warning=ExperimentalWarning', ...wholeYoungGeneration].join(' ')
  const script = `#!/bin/sh\nexec "${node}" ${flags} "${path.join(out, 'muster.js')}" "$@"\n`
  fs.writeFileSync(command, script, { mode: 0o755 })
  return command
}

/** The file of a thread has to lie beside the code that starts it. A release before 0.3.1 has none. */
const threadsIn = (sources: string): string[] =>
  ['src/platform/tls-thread.ts'].filter((file) => fs.existsSync(path.join(sources, file)))
