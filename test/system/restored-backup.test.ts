// An operator restores an older copy of the store. Its nodes know newer facts, and nothing is issued from it until a person has
// looked.

import assert from 'node:assert/strict'
import * as path from 'node:path'
import { test } from 'node:test'
import { readSlottedFile } from '#platform/slotted-file.ts'
import { longestSighting, parseStatement, type StatementOf } from '#wire/core/statement.ts'
import { act, journalOf, makeToken, refusal, succeeded, tokenOf } from '../compliance/ask-plane.ts'
import { renewNow, untilBack } from '../compliance/failure-story.ts'
import { activeNode } from '../process/active-node.ts'
import { joinMember, untilConnected, type Member } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { rawNode } from '../process/raw-node.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { copyStore } from '../process/store-copy.ts'
import { channelOf } from './channel-setup.ts'

const patience = { withinMs: 60_000, everyMs: 100 }

/** What an agent has kept; null: nothing yet. */
const sightingOf = ({ state }: Member): StatementOf<'sighting'> | null => {
  const kept = readSlottedFile(path.join(state, 'sighting'), longestSighting + 64)
  return kept === null ? null : (parseStatement('sighting', kept)?.value ?? assert.fail('a damaged sighting'))
}

const untilSeen = (member: Member, what: string, holds: (seen: StatementOf<'sighting'>) => boolean): Promise<true> =>
  eventually(
    `${member.id} to have seen ${what}`,
    () => {
      const seen = sightingOf(member)
      return seen !== null && holds(seen)
    },
    patience,
  )

const hasSeen =
  ({ chain, sequence }: Json) =>
  ({ heads }: StatementOf<'sighting'>): boolean =>
    heads.some((head) => head.chain === chain && head.sequence >= sequence)

const continuityOf = async (plane: Plane): Promise<Json> => succeeded(await plane.api('GET', '/v1/store/continuity'))

const untilDoubted = (plane: Plane): Promise<Json> =>
  eventually('the store to be doubted', async () => (await continuityOf(plane)).doubt, patience)

const doubtAlert = async (plane: Plane): Promise<Json> =>
  (await plane.api('GET', '/v1/alerts')).body.alerts.find(({ kind }: Json) => kind === 'store_in_doubt') ?? null

test('a restored older copy is noticed by what its nodes have seen, issues nothing until it is confirmed, and is noticed again', async (t) => {
  const first = await startPlane(t)
  const join = (id: string): Promise<Member> => joinMember(t, first, { id, profile: 'gpu-cloud' })
  const [staying, renewing, leaving] = await Promise.all([join('staying'), join('renewing'), join('leaving')])
  const known = await activeNode(first, 'known')
  const members = [staying, renewing]
  await untilConnected([...members, leaving])
  await first.stop()
  const copy = await copyStore(t, first)

  const second = await first.restart()
  await untilConnected([...members, leaving])
  await act(second, 'leaving', 'revoke', { reason: 'stolen' })
  // It must not be the first to come to the restored copy, with less than the others have seen.
  await leaving.stop()
  await renewNow(renewing)
  const [revoked] = await journalOf(second, { type: 'host.revoked' })
  for (const member of members) await untilSeen(member, 'the revocation', hasSeen(revoked))
  await second.stop()

  await copy.restore()
  const third = await second.restart()
  const doubt = await untilDoubted(third)
  assert.ok(['missing', 'other'].includes(doubt.why), JSON.stringify(doubt))
  assert.ok(doubt.seen >= revoked.sequence && doubt.chain === revoked.chain, JSON.stringify(doubt))
  const [entry] = await journalOf(third, { type: 'store.doubted' })
  assert.deepEqual([entry.node, entry.body.seen], [doubt.node, doubt.seen])
  assert.deepEqual((({ state, severity }) => [state, severity])(await doubtAlert(third)), ['open', 'critical'])
  const ready = await third.api('GET', '/readyz')
  assert.deepEqual([ready.status, ready.body.warnings.length], [200, 1], JSON.stringify(ready.body))
  assert.match(third.stderr(), /the store may be an older copy/)

  // Nothing is issued, and nothing used up: what works goes on working, and revoking does.
  const token = await makeToken(third, { node: 'newcomer' })
  const newcomer = rawNode(await third.target())
  const asked = await newcomer.enrollByToken(token.secret)
  assert.deepEqual([...refusal(asked), asked.headers['retry-after']], [503, 'STORE_IN_DOUBT', '60'])
  assert.equal((await tokenOf(third, token.id)).state, 'unused')
  assert.deepEqual(refusal((await known.renew()).reply), [503, 'STORE_IN_DOUBT'])
  assert.equal((await known.confirm()).status, 200)
  ;(await channelOf(known)).destroy()
  await untilConnected([staying])
  await eventually(
    'an agent whose certificate is forgotten to wait',
    () => renewing.says()?.troubles.some(({ place, code }) => place === 'recovery' && code === 'STORE_IN_DOUBT'),
    patience,
  )
  await act(third, 'leaving', 'revoke', { reason: 'stolen, as before' })
  // Our own trouble is nobody's failure.
  const refused = await journalOf(third, { type: 'refused' })
  assert.deepEqual([...new Set(refused.map(({ body }) => body.code))], ['CLIENT_CERT_UNKNOWN'])

  const shown = await third.muster('store', 'confirm')
  assert.equal(shown.code, 7, shown.stderr)
  assert.match(shown.stdout, /older copy/)
  const confirmed = await third.muster('store', 'confirm', '--reason', 'the disk died on monday')
  assert.equal(confirmed.code, 0, confirmed.stderr)
  assert.match(confirmed.stdout + confirmed.stderr, /confirmed.*\n[^]*revoke again/)
  assert.deepEqual(await continuityOf(third), { lineage: 1, doubt: null })
  assert.equal(await doubtAlert(third), null)
  const again = await third.muster('store', 'confirm', '--reason', 'twice')
  assert.match(again.stderr, /STORE_NOT_IN_DOUBT/)
  const [said] = await journalOf(third, { type: 'store.confirmed' })
  assert.deepEqual([said.body.reason, said.body.lineage], ['the disk died on monday', 1])

  assert.equal((await newcomer.enrollByToken(token.secret)).status, 200)
  assert.equal((await known.renew()).reply.status, 200)
  renewing.signal('SIGUSR2')
  await untilBack(third, renewing, 2)
  for (const member of members) await untilSeen(member, 'the confirmation', ({ lineage }) => lineage === 1)

  // Only the one comes back whose certificate the copy does not know: it shows what it has seen where it recovers.
  for (const other of [staying, leaving]) await other.stop()
  await third.stop()
  await copy.restore()
  const fourth = await third.restart()
  const anew = await untilDoubted(fourth)
  assert.deepEqual([anew.why, anew.node, anew.seen_lineage], ['lineage', 'renewing', 1])
  assert.equal((await fourth.muster('store', 'confirm', '--reason', 'once more')).code, 0)
  assert.equal((await continuityOf(fourth)).lineage, 2)
  renewing.signal('SIGUSR2')
  await untilBack(fourth, renewing, 2)
  await untilSeen(renewing, 'the second confirmation', ({ lineage }) => lineage === 2)
  assert.equal((await fourth.muster('journal', 'verify')).code, 0)
})

/** Of a channel that says it has none. */
const sightingSentTo = async (plane: Plane, id: string): Promise<string> => {
  const node = await activeNode(plane, id)
  const channel = await channelOf(node)
  channel.send('sighting', { statement: null })
  const { body } = await channel.frame('sighting', patience)
  channel.destroy()
  return body.statement
}

const changed = (statement: string, change: (value: StatementOf<'sighting'>) => StatementOf<'sighting'>): string => {
  const [kind, body = '', signature] = statement.split('.')
  const value = change(JSON.parse(Buffer.from(body, 'base64url').toString('utf8')))
  return [kind, Buffer.from(JSON.stringify(value)).toString('base64url'), signature].join('.')
}

test('a sighting that is altered, made up or of another domain is written down as refused, and nothing follows from it', async (t) => {
  const [plane, other] = await Promise.all([startPlane(t), startPlane(t, { args: ['--domain', 'other.example'] })])
  const told = await sightingSentTo(plane, 'teller')
  const later = changed(told, (seen) => ({
    ...seen,
    heads: seen.heads.map((head) => ({ ...head, sequence: head.sequence + 1000 })),
  }))
  const anotherLineage = changed(told, (seen) => ({ ...seen, lineage: 7 }))
  const foreign = await sightingSentTo(other, 'stranger')
  const bad = [later, anotherLineage, foreign, 'sighting1.e30.AA', 'x'.repeat(20_000)]
  for (const [at, statement] of bad.entries()) {
    const node = await activeNode(plane, `liar-${at}`)
    const channel = await channelOf(node)
    channel.send('sighting', { statement })
    // It goes on as if it had shown none.
    assert.ok((await channel.frame('sighting', patience)).body.statement.startsWith('sighting1.'))
    channel.destroy()
  }
  const refused = (await journalOf(plane, { type: 'refused' })).map(({ node, body }) => [node, body.code, body.attempt])
  assert.deepEqual(
    refused,
    bad.map((_, at) => [`liar-${at}`, 'REQUEST_INVALID', 'frame sighting']),
  )
  assert.deepEqual(await continuityOf(plane), { lineage: 0, doubt: null })
  assert.deepEqual(await journalOf(plane, { type: 'store.doubted' }), [])

  // A true sighting is accepted; one shown twice ends the channel; a node that shows none gets none.
  const honest = await activeNode(plane, 'honest')
  const [channel, silent] = [await channelOf(honest), await channelOf(await activeNode(plane, 'silent'))]
  channel.send('sighting', { statement: told })
  await channel.frame('sighting', patience)
  channel.send('sighting', { statement: told })
  assert.equal((await channel.frame('closing')).body.code, 'REQUEST_INVALID')
  assert.ok(!silent.frames.some(({ type }) => type === 'sighting'))
  silent.destroy()
  assert.deepEqual(await continuityOf(plane), { lineage: 0, doubt: null })
})
