// `npm test [-- FILTER...]`: peers, check, then every test, and the flows and compliance a second time on PostgreSQL.
// --long runs the counts the issues state; --no-check and --only-check are for speed while working; --record writes down how
// long each file took (scripts/test-times.ts).

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { run } from 'node:test'
import { peer } from '../test/peers/peer.ts'
import { commandVariable } from '../test/process/child.ts'
import { placeText, postgresVariable, startPostgres } from '../test/process/postgres-server.ts'
import { storeVariable } from '../test/process/store-under-test.ts'
import { filesForBothStores } from './both-stores.ts'
import { check } from './check.ts'
import { installPeers } from './install-peers.ts'
import { filesBelow, root } from './repository.ts'
import { reportFiles, total, type Counts } from './test-reporter.ts'
import { buildTestCommand } from './test-command.ts'
import { cpuOfEndedChildren, knownTimes, openQueue, writeTimes, type LaneKind, type Times } from './test-times.ts'

const flags = ['--long', '--no-check', '--only-check', '--record']
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

/** `name` stands behind the file in what is reported. */
type Job = { readonly name: string; readonly file: string; readonly env: NodeJS.ProcessEnv }
type Sum = { readonly counts: Counts; readonly success: boolean }

/** More than there are processors: what tests do most is wait. A lane without work of its kind takes the other's. */
const lanes: readonly LaneKind[] = ['working', 'working', 'working', 'waiting', 'waiting']
const reportedAs = ({ name, file }: Job): string => `${file} ${name}`.trimEnd()

/** Hundreds of planes, agents and commands are started, each of which costs half as much when what was compiled is kept. */
const compiled = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-compiled-'))
process.once('exit', () => fs.rmSync(compiled, { recursive: true, force: true }))

const runFile = async (command: string, { name, file, env }: Job): Promise<Sum> => {
  const events = run({
    cwd: root,
    files: [file],
    // A test that hangs has to fail, not to hold up the rest. Those that wait longer say so themselves.
    timeout: long ? 4 * 3600_000 : 300_000,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: compiled,
      [commandVariable]: command,
      ...(long ? { MUSTER_LONG: '1' } : {}),
      ...env,
    },
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
  const known = knownTimes(root)
  const command = await buildTestCommand(compiled)
  const queue = openQueue(jobs, reportedAs, known)
  const sums: Sum[] = []
  const taken: Record<string, Times> = {}
  // What ended since the last look was the file that has just ended, and rarely another one as well.
  let cpuBefore = cpuOfEndedChildren()
  const runLane = async (kind: LaneKind): Promise<void> => {
    for (let job = queue.next(kind); job !== null; job = queue.next(kind)) {
      const sinceMs = performance.now()
      sums.push(await runFile(command, job))
      const [seconds, cpuNow] = [(performance.now() - sinceMs) / 1000, cpuOfEndedChildren()]
      taken[reportedAs(job)] = { seconds, cpu: cpuNow === null || cpuBefore === null ? seconds : cpuNow - cpuBefore }
      cpuBefore = cpuNow
    }
  }
  await Promise.all(lanes.map(runLane))
  // Of what was not run now, the former is kept.
  if (given.includes('--record')) writeTimes(root, filters.length === 0 ? taken : { ...known, ...taken })
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
