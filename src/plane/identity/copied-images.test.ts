import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Alert } from '#domain/alerts/alert.ts'
import { noKeyClaims } from '#domain/identity/key-claim.ts'
import { openCopiedImages } from './copied-images.ts'
import type { FlowCore } from '#plane/core/core.ts'

test('an alert about a copied image names and counts the machines, and is not raised for each of them', async () => {
  const raised: Alert[] = []
  let nowMs = 1_000_000
  const row = () => ({ version: raised.length, value: raised.at(-1) })
  const core = {
    store: {
      get: async () => (raised.length === 0 ? null : row()),
      async commit({ writes }: { writes: readonly { value: Alert }[] }) {
        for (const { value } of writes) raised.push(value)
        return { kind: 'committed' }
      },
    },
    feed: { publish() {} },
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    random: { bytes: (length: number) => Buffer.alloc(length) },
  } as unknown as FlowCore
  const copiedImages = openCopiedImages(core)
  const spki = 'a'.repeat(64)
  const holders = [{ node: 'c1', use: 'tls', sinceMs: 1 } as const]
  const claims = { ...noKeyClaims, certified: { version: 1, value: { spki, holders } } }
  for (let at = 2; at < 302; at++, nowMs++) await copiedImages.raise(`c${at}`, claims, '192.0.2.1')
  assert.equal(raised.length, 9, '1, 2, 4 up to 256')
  nowMs += 60_000
  await copiedImages.raise('c301', claims, '192.0.2.1')
  assert.equal(
    raised.at(-1)?.reason,
    'copied image: c2, c3, c4, c5, c6 and 295 more brought the key of c1, the last from 192.0.2.1',
  )
  await copiedImages.raise('c301', claims, '192.0.2.1')
  assert.equal(raised.length, 10, 'nothing new')
  for (let at = 302; at < 2000; at++) await copiedImages.raise(`c${at}`, claims, '192.0.2.1')
  nowMs += 60_000
  await copiedImages.raise('c2000', claims, '192.0.2.1')
  assert.match(raised.at(-1)?.reason ?? '', /c6 and 995 or more brought/, 'no more of them are kept')
  nowMs += 24 * 3_600_000
  await copiedImages.raise('c3000', claims, '192.0.2.1')
  await copiedImages.raise('c3001', claims, '192.0.2.1')
  assert.match(raised.at(-1)?.reason ?? '', /: c3000, c3001 brought/, 'those of the day before are forgotten')
})
