// Started by store-postgres-server.test.ts, and stopped by it in the middle of a transaction: a replica that makes one
// commit on a command, and prints the outcome.

import { createPrivateKey, createPublicKey } from 'node:crypto'
import * as fs from 'node:fs'
import type { PostgresTarget } from '#platform/postgres.ts'
import { sleep, systemTimers } from '#platform/timers.ts'
import { newNode, note, openPostgresStoreOn, putNode, read, signerOf } from '../store/harness.ts'

const [place = '', keyFile = ''] = process.argv.slice(2)
const target: PostgresTarget = { ...(JSON.parse(place) as PostgresTarget), password: async () => null }
const key = createPrivateKey(fs.readFileSync(keyFile))
const store = await openPostgresStoreOn(target, signerOf(key, createPublicKey(key)))
await store.commit(newNode('of the child'))
console.log(`replica ${store.replicas.self}`)
while ((await store.get('node', 'go')) === null) await sleep(systemTimers, 20)
const outcome = await store
  .commit({ reads: [read('node', 'hot', 1)], writes: [putNode('hot', { epoch: 1 })], entries: [note('hot')] })
  .then(
    (answer) => (answer === 'lost-race' ? answer : answer.kind),
    (error: unknown) => `rejected ${String(error)}`,
  )
console.log(`outcome ${outcome}`)
process.exit(0)
