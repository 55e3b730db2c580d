// `npm test [-- FILTER...]`: peers, check, then every test, and the flows and compliance a second time on PostgreSQL.
// --long runs the counts the issues state; --no-check and --only-check are for speed while working.

import * as path from 'node:path'
import { run } from 'node:test'
import { peer } from '../test/peers/peer.ts'
import { placeText, postgresVariable, startPostgres } from '../test/process/postgres-server.ts'
import { storeVariable } from '../test/process/store-under-test.ts'
import { filesForBothStores } from './both-stores.ts'
import { check } from './check.ts'
import { installPeers } from './install-peers.ts'
import { filesBelow, root } from './repository.ts'
import { reportTests } from './test-reporter.ts'

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

/** They take minutes and next to no processor: they begin first, and the others do not wait for them. */
const waitingFiles = [
  'test/faults/rotation-stream.test.ts',
  'test/faults/plane-outage.test.ts',
  'test/cluster/failover.test.ts',
]
const waits = (file: string): boolean => waitingFiles.includes(file)

/** `name` stands behind each file in what is reported. */
type Run = {
  readonly name: string
  readonly files: readonly string[]
  readonly lanes: number
  readonly env: NodeJS.ProcessEnv
}

const runFiles = async ({ name, files, lanes, env }: Run): Promise<boolean> => {
  const events = run({
    cwd: root,
    files: [...files.filter(waits), ...files.filter((file) => !waits(file))],
    concurrency: lanes,
    // A test that hangs has to fail, not to hold up the rest. Those that wait longer say so themselves.
    timeout: long ? 4 * 3600_000 : 300_000,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: { ...process.env, ...(long ? { MUSTER_LONG: '1' } : {}), ...env },
  })
  let passed = false
  events.on('test:summary', ({ file, success }) => {
    if (file === undefined) passed = success
  })
  for await (const text of reportTests(events, name)) process.stdout.write(text)
  return passed
}

/** One server for all of them, and both runs side by side: what they do most is wait. */
const runTests = async (): Promise<boolean> => {
  const usual: Run = { name: '', files: testFiles, lanes: Math.max(2, 1 + testFiles.filter(waits).length), env: {} }
  const again = filesForBothStores(root, testFiles)
  if ('missing' in peer('postgres')) {
    // In CI that has been a failure by now: installPeers says which tests go without.
    if (again.length > 0) console.log(`no PostgreSQL: ${again.length} files are run on SQLite only`)
    return runFiles(usual)
  }
  const ends: (() => unknown)[] = []
  const server = await startPostgres({ after: (end) => void ends.push(end as () => unknown) })
  const shared = { [postgresVariable]: placeText(server) }
  try {
    const runs = [
      runFiles({ ...usual, env: shared }),
      ...(again.length === 0
        ? []
        : [runFiles({ name: '[postgres]', files: again, lanes: 2, env: { ...shared, [storeVariable]: 'postgres' } })]),
    ]
    return (await Promise.all(runs)).every((passed) => passed)
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
