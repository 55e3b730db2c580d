// Which tests are run on both stores: those of flows, system and compliance that start a plane or open a store. The others
// would do the same thing twice.

import { testFilesReached } from './reached-files.ts'

/** Whoever reaches one of these has a store, and it is the one the run is about. */
const doors = ['test/process/start-plane.ts', 'test/process/store-under-test.ts']

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

export const filesForBothStores = (root: string, testFiles: readonly string[], long: boolean): string[] =>
  testFiles
    .filter((file) => /^test\/(flows|system|compliance)\//.test(file) && !(file in onceIsEnough))
    .filter((file) => long || !onceInTheShortRun.includes(file))
    .filter((file) => doors.some((door) => testFilesReached(root, file).has(door)))
