// `npm test [-- FILTER...]`: peers, check and every layer of the tests (test-layers.ts), and what differs by store a second time
// on PostgreSQL. `npm run test:unit`, `test:flows` and `test:system` are one layer each, without the check. --long runs the
// counts the issues state, --peers the tests with other people's programs with those counts; --no-check and --only-check are for
// speed while working; --record writes down how long each file took (test-times.ts); --count counts the assertions that are executed.

import * as path from 'node:path'
import { peer } from '../test/peers/peer.ts'
import { peersFolder, peersVariable } from '../test/peers/run-of-peers.ts'
import { commandVariable } from '../test/process/child.ts'
import { laneVariable } from '../test/process/free-port.ts'
import { placeText, postgresVariable, startPostgres } from '../test/process/postgres-server.ts'
import { storeVariable } from '../test/process/store-under-test.ts'
import { filesForBothStores } from './both-stores.ts'
import { check } from './check.ts'
import { installPeers, type PeersAtHand } from './install-peers.ts'
import { filesBelow, root } from './repository.ts'
import { buildTestCommand, compileCommand } from './test-command.ts'
import { openTestFolder } from './test-folder.ts'
import { processorIsIdle, processorsAreShared } from './spare-processors.ts'
import { openLane, type LaneOptions } from './test-lane.ts'
import { layerOf, layers } from './test-layers.ts'
import { reportText, totalText, type FileReport } from './test-reporter.ts'
import { knownTimes, openQueue, writeTimes, type KnownTimes, type LaneKind, type Times } from './test-times.ts'

const layerFlags = layers.map((layer) => `--layer=${layer}`)
const flags = ['--long', '--peers', '--no-check', '--only-check', '--record', '--count', ...layerFlags]
const given = process.argv.slice(2)
const unknown = given.find((argument) => argument.startsWith('-') && !flags.includes(argument))
if (unknown !== undefined) {
  console.error(`npm test: ${unknown} is not an option; there are ${flags.join(', ')} and parts of file names`)
  process.exit(64)
}
const filters = given.filter((argument) => !argument.startsWith('-'))
const long = given.includes('--long')
const onlyPeers = given.includes('--peers')
const asked = layers.filter((layer) => given.includes(`--layer=${layer}`))

const testFiles = ['src', 'test']
  .flatMap((folder) => filesBelow(path.join(root, folder), root))
  .filter((file) => file.endsWith('.test.ts'))
  .filter((file) => asked.length === 0 || asked.includes(layerOf(file)))
  .filter((file) => !onlyPeers || file.startsWith(peersFolder))
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))

/** `name` stands behind the file in what is reported. */
type Job = { readonly name: string; readonly file: string; readonly env: Readonly<Record<string, string>> }

type Lane = { readonly kind: LaneKind; readonly when: 'always' | 'shared' | 'idle' }

const lanesOf = (count: number, kind: LaneKind, when: Lane['when'] = 'always'): readonly Lane[] =>
  Array.from({ length: count }, () => ({ kind, when }))

/**
 * More than there are processors: what tests of processes do most is wait. Files that wait are half of the time of all and a
 * quarter of their work, so that they have four lanes; two of these help with the rest, and more would only get in its way. On a
 * machine that does something else as well only two lanes go on, and two more take a file only while a processor is idle.
 * Unit tests never wait: one process has loaded their modules once.
 */
const lanes: readonly Lane[] = testFiles.every((file) => layerOf(file) === 'unit')
  ? lanesOf(1, 'working')
  : [
      ...lanesOf(1, 'working'),
      ...lanesOf(2, 'working', 'shared'),
      ...lanesOf(1, 'waiting'),
      ...lanesOf(1, 'waiting', 'shared'),
      ...lanesOf(2, 'only waiting', 'shared'),
      ...lanesOf(1, 'working', 'idle'),
      ...lanesOf(1, 'only waiting', 'idle'),
    ]
const reportedAs = ({ name, file }: Job): string => `${file} ${name}`.trimEnd()

const folder = openTestFolder(long)
// Of this process, its workers and all they start.
process.env['TMPDIR'] = folder
/** Hundreds of planes, agents and commands are started, each of which costs half as much when what was compiled is kept. */
const compiled = path.join(folder, 'compiled')

/** A test that hangs has to fail, not to hold up the rest. Those that wait longer say so themselves. */
const timeoutMs = long || onlyPeers ? 4 * 3600_000 : 300_000

/** Seconds of the processors, of files that start processes. Less is over before it has paid to compile the command for them. */
const worthCompiling = 20

const testCommand = async (known: KnownTimes): Promise<Record<string, string>> => {
  const files = testFiles.filter((file) => layerOf(file) === 'system')
  if (files.length === 0) return {}
  const command = await buildTestCommand(compiled)
  const seconds = files.reduce((sum, file) => sum + (known[file]?.cpu ?? 0), 0)
  if (seconds >= worthCompiling) await compileCommand(command)
  return { [commandVariable]: command }
}

const laneOptions = async (known: KnownTimes): Promise<LaneOptions> => {
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: compiled,
    ...(await testCommand(known)),
    ...(long ? { MUSTER_LONG: '1' } : {}),
    ...(long || onlyPeers ? { [peersVariable]: '1' } : {}),
  }
  return { env, countAssertions: given.includes('--count') }
}

const runJobs = async (jobs: readonly Job[], peers: PeersAtHand): Promise<boolean> => {
  const startedMs = performance.now()
  const known = knownTimes(root)
  const options = await laneOptions(known)
  const queue = openQueue(jobs, reportedAs, known, ({ file }) => peers.isAwaited(file))
  const reports: FileReport[] = []
  const taken: Record<string, Times> = {}
  const kept: string[] = []
  const isOver = (): boolean => queue.isEmpty()
  const mayRun = { always: async () => true, shared: processorsAreShared, idle: processorIsIdle }
  const nextJob = async ({ kind, when }: Lane): Promise<Job | null> => {
    if (!(await mayRun[when](isOver))) return null
    const next = queue.next(kind)
    if (next !== null || isOver()) return next
    // What is left waits for a peer that is being built.
    await peers.complete
    return queue.next(kind)
  }
  const runLane = async (kindOfLane: Lane, at: number): Promise<void> => {
    const lane = openLane({ ...options, env: { ...options.env, [laneVariable]: `${at}/${lanes.length}` } })
    for (let job = await nextJob(kindOfLane); job !== null; job = await nextJob(kindOfLane)) {
      const { file, name, env } = job
      const { report, printed } = await lane.run({ file, run: name, env, timeoutMs })
      reports.push(report)
      taken[reportedAs(job)] = { seconds: report.seconds, cpu: report.cpuSeconds ?? report.seconds }
      process.stdout.write(reportText(reportedAs(job), report, printed))
    }
    const left = await lane.close()
    if (left !== null) kept.push(left)
  }
  await Promise.all(lanes.map(runLane))
  // Of what was not run now, the former is kept.
  const isWhole = filters.length === 0 && asked.length === 0 && !onlyPeers
  if (given.includes('--record')) writeTimes(root, isWhole ? taken : { ...known, ...taken })
  for (const left of kept) console.log(`FAILED a worker did not end when its files had\n${left}`)
  process.stdout.write(totalText(reports, (performance.now() - startedMs) / 1000))
  return kept.length === 0 && reports.every(({ outcome }) => outcome === 'passed')
}

/** The server of a run outlives no crash: tests of crashes start their own. */
const unsafeButQuick = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off' }

const runTests = async (peers: PeersAtHand): Promise<boolean> => {
  const again = filesForBothStores(root, testFiles, long)
  const needsServer = testFiles.some((file) => layerOf(file) !== 'unit')
  if (!needsServer || 'missing' in peer('postgres')) {
    // In CI that is a failure, as installPeers has found by now.
    if (again.length > 0) console.log(`no PostgreSQL: ${again.length} files are run on SQLite only`)
    return runJobs(
      testFiles.map((file) => ({ name: '', file, env: {} })),
      peers,
    )
  }
  const ends: (() => unknown)[] = []
  const server = await startPostgres({ after: (end) => void ends.push(end as () => unknown) }, unsafeButQuick)
  const shared = { [postgresVariable]: placeText(server) }
  try {
    const jobs = [
      ...again.map((file) => ({ name: '[postgres]', file, env: { ...shared, [storeVariable]: 'postgres' } })),
      ...testFiles.map((file) => ({ name: '', file, env: shared })),
    ]
    return await runJobs(jobs, peers)
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
  const peers = await installPeers(root, testFiles, long)
  // The check leaves a processor idle now and then, and so do the tests.
  const checked = given.includes('--no-check') || asked.length > 0 || onlyPeers ? true : check()
  const tested = await runTests(peers)
  return (await checked) && (await peers.complete) && tested
}

const startedMs = performance.now()
const passed = await main()
console.log(`${passed ? 'passed' : 'FAILED'} in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
process.exit(passed ? 0 : 1)
