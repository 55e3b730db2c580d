import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { StoreFault } from '#plane/store/contract/store-errors.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { withPeer } from '../peers/peer.ts'
import { makeSigner, newNode, openStore, workplace } from '../store/harness.ts'

/** A disk of its own that is soon full; null, and the test skipped, where this process may not mount one. */
const smallDisk = (t: TestContext) => {
  if (withPeer(t, 'tmpfs') === null) return null
  const { folder, atEnd } = workplace(t)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', folder])
  atEnd(() => execFileSync('umount', [folder]))
  return { folder, atEnd, ballast: path.join(folder, 'ballast') }
}

const groupOf = (round: number): readonly string[] => Array.from({ length: 30 }, (_, index) => `r${round}-${index}`)

/** Heavy enough that the disk fills within some groups. */
const heavy = (id: string) => newNode(id, { registeredBy: id.padEnd(2000, '.') })

/** Which of these were told of a success; the others must have been told of a fault. */
const acknowledgedOf = async (store: Store, ids: readonly string[]): Promise<readonly string[]> => {
  const outcomes = await Promise.allSettled(ids.map((id) => store.commit(heavy(id))))
  return ids.filter((_, index) => {
    const outcome = outcomes[index]
    assert(outcome)
    if (outcome.status === 'rejected') assert(outcome.reason instanceof StoreFault, String(outcome.reason))
    else assert.notEqual(outcome.value, 'lost-race')
    return outcome.status === 'fulfilled'
  })
}

test('a full disk in the middle of group commits: no caller gets a success that is not durable, and with room it goes on', async (t) => {
  const disk = smallDisk(t)
  if (disk === null) return
  const signer = makeSigner()
  fs.writeFileSync(disk.ballast, Buffer.alloc(3 << 20))
  const data = path.join(disk.folder, 'data')
  let store = await openStore(data, signer)
  disk.atEnd(() => store.close())
  const told = new Set<string>()

  let round = 0
  for (; store.trouble() === null; round++) {
    assert(round < 200, 'the disk never filled')
    const ids = groupOf(round)
    const successes = await acknowledgedOf(store, ids)
    assert(successes.length === 0 || successes.length === ids.length, 'a group is kept whole or not at all')
    for (const id of successes) told.add(id)
  }
  assert.match(store.trouble() ?? '', /full|disk/)
  store.observe('n1', { lastSeenMs: 1 })

  const agree = async (): Promise<void> => {
    const kept = await store.nodes({ membership: null, profile: null, after: null, limit: 100_000 })
    assert.deepEqual(kept.map((row) => row.value.id).sort(), [...told].sort())
    const verification = await store.journal.verify()
    assert.deepEqual([verification.kind, verification.entries], ['intact', told.size])
  }
  await agree()
  assert.deepEqual(await acknowledgedOf(store, groupOf(round)), [], 'it is still full')

  fs.rmSync(disk.ballast)
  for (const id of await acknowledgedOf(store, groupOf(round + 1))) told.add(id)
  assert(told.has(`r${round + 1}-0`), 'there is room, and it does not go on')
  assert.equal(store.trouble(), null)
  await agree()
  await store.close()
  store = await openStore(data, signer)
  await agree()
})
