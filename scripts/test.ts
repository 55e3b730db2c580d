// `npm test [-- FILTER...]`: peers, check, then every test, and the flows and compliance a second time on PostgreSQL.
// --long runs the counts the issues state; --no-check and --only-check are for speed while working.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { run } from 'node:test'
import { peer } from '../test/peers/peer.ts'
import { placeText, postgresVariable, startPostgres } from '../test/process/postgres-server.ts'
import { storeVariable } from '../test/process/store-under-test.ts'
import { filesForBothStores } from './both-stores.ts'
import { check } from './check.ts'
import { installPeers } from './install-peers.ts'
import { filesBelow, root } from './repository.ts'
import { reportFiles, total, type Counts } from './test-reporter.ts'

const flags = ['--long', '--no-check', '--only-check']
const given = process.argv.slice(2)
const unknown = given.find((argument) => argument.startsWith('-') && !flags.includes(argument))
if (unknown !== undefined) {
  console.error(`npm test: ${unknown} is not an option; there are ${flags.join(', ')} and parts of file names`)
  process.exit(64)
}
const filters = given.filter((argument) => !argument.startsWith('-'))
const long = given.includes('--long')

const testFiles = ['src', 'test']
  .flatMap((folder) => filesBelow(path.join(root, folder), root))
  .filter((file) => file.endsWith('.test.ts'))
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))

/** They take long and next to no processor. */
const waitingFiles = [
  'test/faults/rotation-stream.test.ts',
  'test/faults/plane-outage.test.ts',
  'test/cluster/failover.test.ts',
  'test/cluster/database-outage.test.ts',
  'test/cluster/stopped-replica.test.ts',
  'test/cluster/replica-death.test.ts',
  'test/cluster/stopped-leader.test.ts',
  'test/cluster/duplicate-across.test.ts',
]
const waits = (file: string): boolean => waitingFiles.includes(file)

/** `name` stands behind the file in what is reported. */
type Job = { readonly name: string; readonly file: string; readonly env: NodeJS.ProcessEnv }
type Sum = { readonly counts: Counts; readonly success: boolean }

/** More than there are processors: what tests do most is wait. Those that do little else have lanes of their own. */
const lanes = { working: 4, waiting: 2 }

/** Hundreds of planes, agents and commands are started, each of which costs half as much when what was compiled is kept. */
const compiled = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-compiled-'))
process.once('exit', () => fs.rmSync(compiled, { recursive: true, force: true }))

const runFile = async ({ name, file, env }: Job): Promise<Sum> => {
  const events = run({
    cwd: root,
    files: [file],
    // A test that hangs has to fail, not to hold up the rest. Those that wait longer say so themselves.
    timeout: long ? 4 * 3600_000 : 300_000,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled, ...(long ? { MUSTER_LONG: '1' } : {}), ...env },
  })
  const report = reportFiles(events, name)
  for (;;) {
    const { done, value } = await report.next()
    if (done) return value
    process.stdout.write(value)
  }
}

const runJobs = async (jobs: readonly Job[]): Promise<boolean> => {
  const startedMs = performance.now()
  const waiting = jobs.filter(({ file }) => waits(file))
  const working = jobs.filter(({ file }) => !waits(file))
  const sums: Sum[] = []
  const lane = async (next: () => Job | undefined): Promise<void> => {
    for (let job = next(); job !== undefined; job = next()) sums.push(await runFile(job))
  }
  await Promise.all([
    ...Array.from({ length: lanes.waiting }, () => lane(() => waiting.shift())),
    ...Array.from({ length: lanes.working }, () => lane(() => working.shift() ?? waiting.shift())),
  ])
  const sum = (count: keyof Counts): number => sums.reduce((all, { counts }) => all + counts[count], 0)
  const counts = { tests: sum('tests'), passed: sum('passed'), skipped: sum('skipped') }
  process.stdout.write(total(counts, performance.now() - startedMs))
  return sums.every(({ success }) => success)
}

const runTests = async (): Promise<boolean> => {
  const again = filesForBothStores(root, testFiles, long)
  if ('missing' in peer('postgres')) {
    // In CI that is a failure, as installPeers has found by now.
    if (again.length > 0) console.log(`no PostgreSQL: ${again.length} files are run on SQLite only`)
    return runJobs(testFiles.map((file) => ({ name: '', file, env: {} })))
  }
  const ends: (() => unknown)[] = []
  const server = await startPostgres({ after: (end) => void ends.push(end as () => unknown) })
  const shared = { [postgresVariable]: placeText(server) }
  try {
    return await runJobs([
      ...again.map((file) => ({ name: '[postgres]', file, env: { ...shared, [storeVariable]: 'postgres' } })),
      ...testFiles.map((file) => ({ name: '', file, env: shared })),
    ])
  } finally {
    for (const end of ends) await end()
  }
}

// Whatever was started ends with this process: that is done on `exit`, which a signal alone does not bring about.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const main = async (): Promise<boolean> => {
  if (given.includes('--only-check')) return check()
  if (testFiles.length === 0) {
    console.error(`npm test: no test file has ${filters.join(' or ')} in its name`)
    return false
  }
  const peers = await installPeers(root, testFiles)
  const checked = given.includes('--no-check') || (await check())
  const tested = await runTests()
  return peers && checked && tested
}

const startedMs = performance.now()
const passed = await main()
console.log(`${passed ? 'passed' : 'FAILED'} in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
process.exit(passed ? 0 : 1)
