// `npm run bench NAME [ARGUMENTS]`: runs bench/NAME/main.ts, or bench/NAME.ts where that says so itself (the other files
// there are what benchmarks share). Without a name, lists what there is.

import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { filesBelow, root } from './repository.ts'

const saysSo = (file: string, name: string): boolean => fs.readFileSync(file, 'utf8').includes(`npm run bench ${name}`)

const benches = new Map(
  filesBelow(path.join(root, 'bench'), path.join(root, 'bench')).flatMap((file) => {
    const [, name, folder] = /^([\w-]+)(\/main)?\.ts$/.exec(file) ?? []
    const full = path.join(root, 'bench', file)
    const isBench = name !== undefined && (folder !== undefined || saysSo(full, name))
    return isBench ? [[name, full] as const] : []
  }),
)

/** As they are written at the top of each. */
const usages = (bench: string): string[] =>
  [...fs.readFileSync(bench, 'utf8').matchAll(/^\/\/ +(npm run bench .*)$/gm)].map(([, line]) => line ?? '')

/** As EX_USAGE of sysexits.h. */
const wrongUsage = 64

const printUsages = (files: Iterable<string>): void => {
  for (const known of files) for (const line of usages(known)) console.error(`    ${line}`)
}

const [name, ...rest] = process.argv.slice(2)
const file = name === undefined ? undefined : benches.get(name)
if (file === undefined) {
  console.error('usage: npm run bench NAME [-- ARGUMENTS]\n')
  printUsages(benches.values())
  process.exit(name === undefined ? 0 : wrongUsage)
}
if (rest.includes('--help')) {
  printUsages([file])
  process.exit(0)
}
const bench = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--expose-gc', file, ...rest], {
  cwd: root,
  stdio: 'inherit',
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => bench.kill(signal))
bench.on('close', (code, signal) => {
  if (code === wrongUsage) printUsages([file])
  process.exit(signal === null ? (code ?? 1) : 1)
})
