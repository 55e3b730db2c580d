// Which tests are run on both stores: of flows, system and compliance those that start a plane or open a store, and whose text
// shows one of the things in which the stores differ; of peers those that write orders. The others would do the same thing twice,
// and do in the long run.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { testFilesReached } from './reached-files.ts'

/** A file that reaches one of these has a store, and it is the one the run is about. */
const doors = ['test/process/start-plane.ts', 'test/process/store-under-test.ts']

/** What starts an agent as a process: a plane that goes away is then something that happens to the agent. */
const agentStarters = ['test/process/start-agent.ts']

/** SQLite has one writer, one process and one journal. */
const storesDiffer = (root: string, file: string): boolean => {
  const text = fs.readFileSync(path.join(root, file), 'utf8')
  const shows = (shape: RegExp): boolean => shape.test(`${file}\n${text}`)
  const titles = [file, ...[...text.matchAll(/\btest\(\s*(['"`])([^]*?)\1,/g)].map(([, , title = '']) => title)].join(
    '\n',
  )
  return (
    // Commits at the same time, one that is lost, and one that loses against another.
    shows(/\bPromise\.(all|allSettled|race)\(|\binParallel\(/) ||
    /\b(lost|races?|at once|at the same time)\b/.test(titles) ||
    shows(/\b(overtakes?|overtaken|meanwhile)\b/) ||
    // What replicas commit, rows that are read or changed by SQL, and text that not every store takes.
    shows(/\breplicas?\b|\btamperWith\b|\bdatabaseOf\b|\bsql\(|PostgreSQL/i) ||
    // A plane that ends and is started again on what it has committed.
    (shows(/\bplane\w*(\(\))?\.(kill9|restart)\(/) && !reachesAny(root, file, agentStarters))
  )
}

/** They have a store all the same, and why once is enough. */
export const onceIsEnough: Readonly<Record<string, string>> = {
  'test/system/cli-store.test.ts': 'names the stores itself',
  'test/system/plane-postgres.test.ts': 'is about PostgreSQL alone',
}

/** What fails in these is the machine of an agent, and the store is the same to it: both stores only in the long run. */
export const onceInTheShortRun: readonly string[] = [
  'test/compliance/failure-matrix-clock.test.ts',
  'test/compliance/failure-matrix-disk.test.ts',
  'test/compliance/failure-matrix-expired.test.ts',
  'test/compliance/failure-matrix-hostname.test.ts',
  'test/compliance/failure-matrix-trust.test.ts',
  'test/system/agent-late-registration.test.ts',
  'test/system/agent-rotation.test.ts',
]

/** Their issuers are real, and what a plane writes for an order is committed by each store in its own way. */
const ordersAtPeers: readonly string[] = ['test/peers/issuer-lives.test.ts', 'test/peers/step-ca-kills.test.ts']

export const filesForBothStores = (root: string, testFiles: readonly string[], long: boolean): string[] =>
  testFiles
    .filter((file) => ordersAtPeers.includes(file) || isForBoth(root, file, long))
    .filter((file) => reachesAny(root, file, doors))

const isForBoth = (root: string, file: string, long: boolean): boolean =>
  /^test\/(flows|system|compliance)\//.test(file) &&
  !(file in onceIsEnough) &&
  (long || (!onceInTheShortRun.includes(file) && storesDiffer(root, file)))

const reachesAny = (root: string, file: string, wanted: readonly string[]): boolean => {
  const reached = testFilesReached(root, file)
  return wanted.some((one) => reached.has(one))
}
