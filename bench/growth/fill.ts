// Fills a data folder with a fleet and a history, in a process of its own: `fill.ts FOLDER NODES DENIED ENTRIES`, each the
// number that is there afterwards. The nodes are enrolled by the plane's own flow; what is denied and what the journal has
// besides is committed by its own store.

import type { EntryDraft } from '#domain/core/journal-entry.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { openEnrollingPlane } from '../enrolling-plane.ts'
import { inParallel } from '../in-parallel.ts'

const [folder, nodes, denied, entries] = process.argv.slice(2)
const atOnce = 256
/** Entries of one commit, and commits that share a group. */
const entriesEach = 500

const plane = await openEnrollingPlane(folder!)
const { store } = plane
const day = 86_400_000

const { length: known } = await store.nodes({ membership: null, profile: null, after: null, limit: 1_000_000 })
await inParallel(atOnce, Number(nodes) - known, async (at) => {
  const secret = await plane.token(`grown-${String(known + at).padStart(7, '0')}`)
  await plane.enroll(secret, makeCsr(generateKey('p256'), 'grown'))
})

const about = (type: EntryDraft['type'], body: EntryDraft['body']): EntryDraft => ({
  type,
  atMs: Date.now(),
  actor: 'system:bench',
  source: '127.0.0.1',
  node: null,
  epoch: null,
  token: null,
  issuer: null,
  serial: null,
  correlation: null,
  body,
})

const [issuer] = await store.issuers()
const { length: deniedBefore } = await store.denials()
await inParallel(atOnce, Number(denied) - deniedBefore, async (at) => {
  const serial = (BigInt(deniedBefore + at) + (1n << 100n)).toString(16)
  const untilMs = Date.now() + 30 * day
  const value = {
    kind: 'certificate',
    issuer: issuer!.value.id,
    serial,
    atMs: 0,
    untilMs,
    why: 'bench',
    reason: 'unspecified',
  } as const
  await store.commit({
    reads: [],
    writes: [{ put: 'denial', value }],
    entries: [about('refusals.counted', { count: 1 })],
  })
})

const counted = about('refusals.counted', { code: 'RATE_LIMITED', count: 1 })
const head = async (): Promise<number> => (await store.journal.heads())[0]?.sequence ?? 0
const missing = Number(entries) - (await head())
await inParallel(16, Math.ceil(Math.max(0, missing) / entriesEach), async () => {
  const rest = Array.from({ length: entriesEach - 1 }, () => counted)
  await store.commit({ reads: [], writes: [], entries: [counted, ...rest] })
})
await store.close()
