// Whatever happens to two nodes, in whatever order, and with whatever lost races: these stay true.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { certificateKey, epochDenialKey, type CertificateRow, everySlot, slotsOf } from '#domain/core/certificate.ts'
import type { Change } from '#domain/core/change.ts'
import { membershipKinds, type Node } from '#domain/core/node.ts'
import { judgeCertificate } from '#domain/identity/presented-certificate.ts'
import { isSchedulingNews, schedulingOf } from '#domain/fleet/scheduling.ts'
import type { EntryType } from '#domain/core/journal-entry.ts'
import { profile, step } from '../../../test/fakes/life-events.ts'
import { startLife, type Life } from '../../../test/fakes/life.ts'
import { noonMs } from '../../../test/fakes/sample-rows.ts'

/** Every way membership may change, and the entry that says so. There are no others. */
const transitions: Readonly<Record<string, readonly EntryType[]>> = {
  'absent > registered': ['node.registered'],
  'absent > enrolled': ['host.enrolled'],
  'registered > enrolled': ['host.enrolled'],
  'enrolled > enrolled anew': ['host.enrolled', 'node.recovered'],
  'active > enrolled anew': ['host.enrolled', 'node.recovered'],
  'inactive > enrolled anew': ['host.enrolled', 'node.recovered'],
  'enrolled > active': ['node.confirmed'],
  'active > inactive': ['node.lapsed'],
  'inactive > active': ['node.returned'],
  'registered > quarantined': ['node.quarantined'],
  'enrolled > quarantined': ['node.quarantined'],
  'active > quarantined': ['node.quarantined'],
  'inactive > quarantined': ['node.quarantined'],
  'quarantined > quarantined anew': ['node.repaired'],
  'quarantined > inactive': ['node.released'],
  'registered > revoked': ['host.revoked'],
  'enrolled > revoked': ['host.revoked'],
  'active > revoked': ['host.revoked'],
  'inactive > revoked': ['host.revoked'],
  'quarantined > revoked': ['host.revoked'],
  'revoked > registered': ['node.registered'],
}

const transition = (before: Node | null, after: Node): string | null => {
  const anew = before !== null && before.membership.kind !== 'registered' && before.epoch !== after.epoch
  const from = before === null ? 'absent' : before.membership.kind
  return from === after.membership.kind && !anew ? null : `${from} > ${after.membership.kind}${anew ? ' anew' : ''}`
}

/** Epochs the journal says have ended, by their keys in the deny-list. */
const endedEpochs = ({ table }: Life): ReadonlySet<string> => {
  const ends: readonly EntryType[] = ['node.quarantined', 'host.revoked', 'node.superseded']
  const ended = table.journal.filter(({ type }) => ends.includes(type))
  return new Set(ended.map(({ node, epoch }) => epochDenialKey(node ?? '', epoch ?? -1)))
}

type Seen = {
  readonly transitions: Set<string>
  readonly entries: Set<string>
  lostRaces: number
  fenced: number
  exempt: number
  releasedRepaired: number
}

/** What the name had before, also where its record was purged. */
type Last = Pick<Node, 'epoch' | 'tenure' | 'counter'>

const commitAndCheck = (life: Life, change: Change, seen: Seen): void => {
  const { table } = life
  const nodes = new Map(table.all('node').map(({ value }) => [value.id, value]))
  const tokens = new Map(table.all('token').map(({ value }) => [value.id, value]))
  const banned = new Set(table.all('key-ban').map(({ value }) => value.spki))
  const ended = endedEpochs(life)
  const purged = new Map(table.all('purged-node').map(({ value }) => [value.name, value]))
  const lastOf = (before: Node | null, id: string): Last =>
    before ?? purged.get(`hash of ${id}`) ?? { epoch: 0, tenure: 0, counter: 0 }
  if (table.commit(change) === 'lost-race') {
    seen.lostRaces++
    return
  }
  change.entries.forEach(({ type }) => seen.entries.add(type))
  for (const write of change.writes) {
    if (write.put === 'node') {
      const before = nodes.get(write.value.id) ?? null
      checkNodeWrite(before, write.value, lastOf(before, write.value.id), change, seen)
      if (write.value.membership.kind === 'revoked') checkBanned(life, before)
      if (before !== null) checkRecovery(before, write.value, change, seen)
    }
    if (write.put === 'token') {
      const was = tokens.get(write.value.id)
      assert.ok(was === undefined || was.state.kind === 'unused', 'a token that was used or withdrawn stays as it is')
    }
    if (write.put === 'certificate') {
      const { subject, spki } = write.value
      assert.ok(subject.kind === 'node')
      assert.ok(!ended.has(epochDenialKey(subject.node, subject.epoch)), 'nothing is issued in an epoch that ended')
      assert.ok(!banned.has(spki), 'a banned key is never certified')
      assert.equal(table.get('node', subject.node)?.value.epoch, subject.epoch, 'a certificate is of the current epoch')
      const before = nodes.get(subject.node) ?? null
      const after = table.get('node', subject.node)?.value ?? assert.fail()
      checkIssued(before, after, lastOf(before, subject.node), change)
    }
  }
}

const checkNodeWrite = (before: Node | null, after: Node, last: Last, { entries }: Change, seen: Seen): void => {
  assert.ok(after.epoch >= last.epoch, 'an epoch never decreases, not even over a purge')
  assert.ok(after.tenure > last.tenure || before !== null, 'a new registration has a new tenure')
  const about = entries.filter(({ node }) => node === after.id).map(({ type }) => type)
  assert.ok(about.length > 0, 'a change of a node has an entry about it')
  if (before !== null && !isDeepStrictEqual(schedulingOf(before), schedulingOf(after))) {
    const news = entries.some((draft) => draft.node === after.id && isSchedulingNews(draft))
    assert.ok(news, `whoever watches scheduling hears of ${about.join(', ')}`)
  }
  const step = transition(before, after)
  if (step === null) return
  seen.transitions.add(step)
  const types = transitions[step]
  assert.ok(types !== undefined, `${step} is no transition`)
  assert.ok(
    about.some((type) => types.includes(type)),
    `${step} is journaled as ${types.join(' or ')}`,
  )
}

/** Whoever gets a certificate was allowed one by its state, and was counted. */
const checkIssued = (before: Node | null, after: Node, last: Last, change: Change): void => {
  assert.equal(after.counter, last.counter + 1, 'every certificate is counted, once')
  assert.notEqual(before?.membership.kind, 'revoked', 'a revoked node never gets a certificate')
  if (before?.membership.kind === 'quarantined') {
    assert.ok(typesOf(change).includes('node.repaired'), 'in quarantine only a repair gives a certificate')
    assert.equal(after.membership.kind, 'quarantined', 'a repair does not end a quarantine')
  }
  const [was, is] = [before?.recovery?.credential, after.recovery?.credential]
  if (is?.kind === 'bearer') {
    assert.ok(was?.kind !== 'bearer' || was.hash !== is.hash, 'a token is rotated with every certificate')
  }
}

const typesOf = ({ entries }: Change): readonly EntryType[] => entries.map(({ type }) => type)

/** What somebody was refused for, or what is only known of a node, takes nothing from it and gives it nothing. */
const harmless: readonly EntryType[] = [
  'node.condition_raised',
  'node.condition_cleared',
  'node.second_holder',
  'node.recoverable',
  'node.unrecoverable',
]

const checkRecovery = (before: Node, after: Node, change: Change, seen: Seen): void => {
  const types = typesOf(change)
  assert.ok(after.counter >= before.counter, 'the counter never decreases')
  if (types.every((type) => harmless.includes(type))) {
    assert.deepEqual({ ...after, conditions: [], rehearsal: null }, { ...before, conditions: [], rehearsal: null })
  }
  if (types.includes('node.second_holder') && types.includes('node.quarantined')) {
    seen.fenced++
    assert.equal(after.recovery, null, 'neither of two holders that are fenced recovers by itself')
  }
  if (types.includes('node.recovered')) checkCounter(before, after, change, seen)
  if (types.includes('node.released') && slotsOf(after) !== null) {
    seen.releasedRepaired++
    assert.equal(before.repair?.evidence?.passed, true, 'a repaired node is released when its evidence has passed')
  }
}

const checkCounter = (before: Node, after: Node, { entries }: Change, seen: Seen): void => {
  const requested = entries.find(({ type }) => type === 'node.recovery_requested')
  const counter = Number(requested?.body['counter'])
  const [was, is] = [slotsOf(before), slotsOf(after)]
  const lost = was !== null && was.pending !== null
  if (counter >= before.counter - (lost ? 1 : 0)) return
  seen.exempt++
  const asksAgain = was !== null && (was.pending ?? was.current).spki === is?.current.spki
  const unpersisted = before.conditions.some(({ name }) => name === 'not_persisted')
  assert.ok(asksAgain || unpersisted, 'an old counter recovers nothing')
}

const checkBanned = ({ table }: Life, before: Node | null): void => {
  const slots = before === null ? null : slotsOf(before)
  const keys = slots === null ? [] : everySlot(slots).map(({ spki }) => spki)
  for (const key of keys) assert.ok(table.get('key-ban', key) !== null, 'the keys of a revoked node are banned')
}

const checkNode = ({ table }: Life, node: Node, ended: ReadonlySet<string>): void => {
  const { id, epoch, membership, conditions, approvals } = node
  assert.ok(membershipKinds.includes(membership.kind))
  assert.equal(new Set(conditions.map(({ name }) => name)).size, conditions.length, 'one condition of a name')
  assert.equal(new Set(approvals.map(({ by }) => by)).size, approvals.length, 'one approval a person')
  assert.equal(schedulingOf(node).state === 'schedulable', schedulingOf(node).reasons.length === 0)
  const { recovery } = node
  assert.ok(recovery === null || recovery.recoveredAtMs.length <= 3, 'the history is bounded by the budget')
  const slots = slotsOf(node)
  if (slots === null) return
  assert.ok(!ended.has(epochDenialKey(id, epoch)), 'a node holds no certificates of an epoch that ended')
  for (const { issuer, serial } of everySlot(slots)) {
    const subject = table.get('certificate', certificateKey(issuer, serial))?.value.subject
    assert.deepEqual(subject, { kind: 'node', node: id, epoch }, 'slots are of the current epoch')
  }
}

const checkEndedCertificate = ({ table, nowMs }: Life, row: CertificateRow): void => {
  assert.ok(row.subject.kind === 'node')
  const { node, epoch } = row.subject
  const denial = table.get('denial', epochDenialKey(node, epoch))
  assert.ok(denial !== null && denial.value.untilMs > row.notAfterMs, 'a denial outlives what it denies')
  // Not even the deny-list is needed: the node's own row refuses it.
  const holder = table.get('node', node)?.value ?? null
  const verdict = judgeCertificate({
    row,
    node: holder,
    ...notDenied,
    source: '192.0.2.8',
    toleranceMs: 300_000,
    nowMs: nowMs(),
  })
  assert.ok('code' in verdict, `a certificate of an epoch that ended still speaks for ${node}`)
}

const notDenied = { denied: false, keyBanned: false, issuerWithdrawn: false }

/** Of all certificates there ever were, those that still speak for a node are of one epoch; in quarantine for evidence only. */
const checkOneEpoch = ({ table, nowMs }: Life): void => {
  for (const { value: node } of table.all('node')) {
    const working = table.all('certificate').flatMap(({ value: row }) => {
      if (row.subject.kind !== 'node' || row.subject.node !== node.id) return []
      const who = judgeCertificate({
        row,
        node,
        ...notDenied,
        source: '192.0.2.8',
        toleranceMs: 300_000,
        nowMs: nowMs(),
      })
      return 'code' in who ? [] : [who]
    })
    assert.ok(new Set(working.map(({ epoch }) => epoch)).size <= 1, 'two epochs never work at once')
    assert.ok(working.every(({ evidenceOnly }) => evidenceOnly === (node.membership.kind === 'quarantined')))
  }
}

const checkState = (life: Life): void => {
  const ended = endedEpochs(life)
  checkOneEpoch(life)
  for (const { value } of life.table.all('node')) checkNode(life, value, ended)
  for (const { value } of life.table.all('certificate')) {
    assert.ok(value.subject.kind === 'node')
    if (ended.has(epochDenialKey(value.subject.node, value.subject.epoch))) checkEndedCertificate(life, value)
  }
}

const mustHappen: readonly EntryType[] = [
  'enrollment_token.used',
  'node.recovered',
  'node.repaired',
  'node.repair_evidence',
  'node.recovery_denied',
  'node.second_holder',
  'node.recoverable',
  'node.unrecoverable',
  'node.superseded',
  'node.purged',
]

test('no order of events breaks the invariants of a node, a token or an epoch', () => {
  const seen: Seen = {
    transitions: new Set(),
    entries: new Set(),
    lostRaces: 0,
    fenced: 0,
    exempt: 0,
    releasedRepaired: 0,
  }
  const numRuns = process.env['MUSTER_LONG'] === '1' ? 20_000 : 1_500
  fc.assert(
    fc.property(profile, fc.array(step, { minLength: 20, maxLength: 120, size: 'max' }), (rules, steps) => {
      const life = startLife(rules, noonMs)
      for (const events of steps) {
        const changes = events.map((one) => life.plan(one)).filter((change) => change !== null)
        changes.forEach((change) => commitAndCheck(life, change, seen))
        checkState(life)
      }
      const uses: readonly EntryType[] = ['host.enrolled', 'enrollment_token.used']
      const users = life.table.journal.filter(({ type, token }) => uses.includes(type) && token !== null)
      assert.equal(new Set(users.map(({ token }) => token)).size, users.length, 'a token has at most one user')
    }),
    { numRuns, seed: 20300101 },
  )
  // The run says something only if everything that may happen did.
  assert.deepEqual([...seen.transitions].sort(), Object.keys(transitions).sort())
  assert.deepEqual(
    mustHappen.filter((type) => !seen.entries.has(type)),
    [],
  )
  assert.ok(seen.lostRaces > 0 && seen.fenced > 0 && seen.exempt > 0 && seen.releasedRepaired > 0)
})
