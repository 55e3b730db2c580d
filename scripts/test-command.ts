// The `muster` that tests start: the sources as they are, in one file instead of hundreds and compiled once for all processes
// (start-compiled.ts), which is half of every start. test/process/real-processes.test.ts and the first transcript start it from
// the sources, as a stranger does.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { build, type BuildOptions } from 'esbuild'
import { programsBeside } from '../test/process/child.ts'
import { inScope } from '../test/process/cleanup.ts'
import { eventually } from '../test/process/eventually.ts'
import { startAgent } from '../test/process/start-agent.ts'
import { startPlane } from '../test/process/start-plane.ts'
import { awaitingPrograms } from './awaiting-programs.ts'
import { root, threadFiles } from './repository.ts'

/** V8 gives a process that lives so long this much anyway. Collecting it while it starts is a tenth of a start. */
const wholeYoungGeneration = ['--min-semi-space-size=16']

/** Agents of tests that are started so often that it counts; they share the program of the command (`testProgram`). */
const testAgents = ['test/process/failpoint-agent.ts']

export const buildTestCommand = (folder: string): Promise<string> => buildCommand(root, folder, testAgents)

/**
 * The first process of each kind is one that does what most do, not one that is refused: what it has compiled is kept for all
 * others of the run.
 */
export const compileCommand = (command: string): Promise<void> =>
  inScope(async (scope) => {
    const plane = await startPlane(scope, { command })
    const { stdout: join } = await plane.musterWith({ command }, 'token', 'create', '--node', 'first')
    const agent = startAgent(scope, { command, join: join.trim() })
    await eventually(
      'the first agent to have a channel',
      async () => {
        const { body } = await plane.api('GET', '/v1/nodes/first')
        return body.channel_open === true
      },
      { withinMs: 60_000 },
    )
    await agent.stop()
    await plane.stop()
  })

/** Of the sources in a folder, which may be those of another release. Returns the command. */
export const buildCommand = async (
  sources: string,
  folder: string,
  agents: readonly string[] = [],
): Promise<string> => {
  const command = path.join(folder, 'bundled', 'muster')
  const out = programsBeside(command)
  const programs = ['bin/muster.ts', ...agents].map((file) => path.join(sources, file))
  const nameOf = (file: string): string => path.basename(file, '.ts')
  const start = programs.map((file) => `'${nameOf(file)}': () => import('${file}')`)
  await build({
    ...bundled(`(function (module, require, __filename, __dirname) {${scriptHead}`, '})'),
    stdin: { contents: `export const start = { ${start.join(', ')} }`, resolveDir: sources },
    outfile: path.join(out, 'programs.js'),
    // Only a script can be compiled once for all.
    plugins: [awaitingPrograms(programs)],
  })
  await build({
    ...bundled(scriptHead),
    absWorkingDir: sources,
    entryPoints: [
      ...programs.map((file) => ({ in: path.join(root, 'scripts/start-compiled.ts'), out: nameOf(file) })),
      ...threadsIn(sources).map((file) => ({ in: file, out: nameOf(file) })),
    ],
    outdir: out,
  })
  // Sources before 0.5 look for it one folder further up.
  for (const above of ['bundled', 'bundled/lib']) {
    fs.symlinkSync(path.join(root, 'packaging'), path.join(folder, above, 'packaging'))
  }
  fs.writeFileSync(path.join(folder, 'bundled', 'package.json'), '{"type":"commonjs"}\n')
  const node = path.join(root, 'node_modules/.bin/node')
  const flags = ['--disable-warning=ExperimentalWarning', ...wholeYoungGeneration].join(' ')
  const script = `#!/bin/sh\nexec "${node}" ${flags} "${path.join(out, 'muster.js')}" "$@"\n`
  fs.writeFileSync(command, script, { mode: 0o755 })
  return command
}

/** A script is not strict by itself, and has no `import.meta`. */
const scriptHead = "'use strict';const __moduleUrl = require('node:url').pathToFileURL(__filename).href"

const bundled = (head: string, foot = ''): BuildOptions => ({
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node24',
  logLevel: 'warning',
  // start-compiled.ts takes each byte for a character.
  charset: 'ascii',
  legalComments: 'none',
  external: ['pg-native'],
  banner: { js: head },
  footer: { js: foot },
  define: {
    'import.meta.url': '__moduleUrl',
    'import.meta.filename': '__filename',
    'import.meta.dirname': '__dirname',
  },
})

/** The file of a thread has to lie beside the code that starts it. Releases before this one have fewer. */
const threadsIn = (sources: string): string[] => threadFiles.filter((file) => fs.existsSync(path.join(sources, file)))
