// Replicas of one plane over one store, in one process, and all that can befall one: it dies, it does not answer, it is out
// of touch, another leads. What one commits the others hear of a turn later, or when they are back in touch.

import type { NodeId } from '#domain/core/node.ts'
import type { Timers } from '#platform/timers.ts'
import type {
  Asked,
  FencingToken,
  Hold,
  Holds,
  ReplicaNumber,
  Replicas,
  Standing,
} from '#plane/store/contract/replicas.ts'
import { StaleReplica } from '#plane/store/contract/store-errors.ts'
import type { Committed, Store } from '#plane/store/contract/store.ts'

type Answer = (question: unknown, from: ReplicaNumber) => Promise<unknown>

type Member = {
  readonly number: ReplicaNumber
  leased: boolean
  mute: boolean
  standing: Standing
  readonly topics: Map<string, Answer>
  readonly onStanding: ((standing: Standing) => void)[]
  readonly onLeadership: ((fencingToken: FencingToken | null) => void)[]
  readonly onForeign: ((committed: Committed) => void)[]
  readonly unpublished: Committed[]
}

export type JoinedReplica = {
  readonly store: Store
  /** As with `kill -9`, once its lease is over: the others have given it up. */
  die(): void
  /** It has a lease and answers nobody, and nobody's answer reaches it. */
  mute(is: boolean): void
  /** Out of touch it hears of no commit until it serves again. */
  stand(kind: Standing['kind']): void
  lead(): void
}

const standings: Readonly<Record<Standing['kind'], Standing>> = {
  serving: { kind: 'serving' },
  behind: { kind: 'behind', why: 'the test says so' },
  'in-doubt': { kind: 'in-doubt', why: 'the test says so' },
  skewed: { kind: 'skewed', why: 'the test says so' },
  expired: { kind: 'expired', why: 'the test says so' },
}

const copyOf = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))

export const joinReplicas = (base: Store, timers: Timers): (() => JoinedReplica) => {
  const members: Member[] = []
  const rows = new Map<NodeId, Hold>()
  const lapsing = new Map<NodeId, Promise<unknown>>()
  let leader: Member | null = null
  let fencingToken: FencingToken = { number: 0 }

  const leased = (number: ReplicaNumber): Member | null =>
    members.find((member) => member.number === number && member.leased) ?? null
  const holdOf = (node: NodeId): Hold | null => {
    const row = rows.get(node)
    return row === undefined || leased(row.replica) === null ? null : row
  }
  const leads = (member: Member): boolean => leader === member && member.leased && member.standing.kind === 'serving'
  const needLease = (member: Member): void => {
    if (!member.leased || member.standing.kind === 'expired') throw new StaleReplica('this replica has no lease')
  }

  const holdsFor = (member: Member): Holds => ({
    async take(node, session, over) {
      // The lapse of a node and the claim of its channel are decided on one row.
      await lapsing.get(node)
      needLease(member)
      const now = holdOf(node)
      const free =
        now === null || now.replica === member.number || (now.instance !== null && now.instance === session.instance)
      const found = now !== null && over !== null && over.replica === now.replica && over.number === now.number
      if (now !== null && !free && !found) return now
      rows.set(node, { ...session, replica: member.number })
      return 'held'
    },
    release(node, session) {
      const now = rows.get(node)
      if (now?.replica === member.number && now.number === session) rows.delete(node)
    },
    of: async (node) => holdOf(node),
    async absent() {
      if (member.standing.kind !== 'serving') throw new StaleReplica('out of touch')
      const active = await base.nodes({ membership: 'active', profile: null, after: null, limit: 1000 })
      return active.map(({ value }) => value.id).filter((node) => holdOf(node) === null)
    },
  })

  const ask = async (from: Member, to: ReplicaNumber, topic: string, question: unknown, withinMs: number) => {
    const other = leased(to)
    if (other === null) return { kind: 'gone' } as const
    const { promise, resolve } = Promise.withResolvers<Asked>()
    const cancel = timers.after(withinMs, () => resolve({ kind: 'no-answer' }))
    const answer = other.topics.get(topic)
    const unreachable = (): boolean => other.mute || from.mute
    if (answer !== undefined && !unreachable()) {
      answer(copyOf(question), from.number).then(
        (value) => !unreachable() && resolve({ kind: 'answer', value: copyOf(value) }),
        () => undefined,
      )
    }
    const asked = await promise
    cancel()
    return asked
  }

  const replicasFor = (member: Member): Replicas => ({
    self: member.number,
    standing: () => member.standing,
    behindMs: () => (member.unpublished.length === 0 ? 0 : null),
    clockOffsetMs: () => 0,
    onStanding: (run) => void member.onStanding.push(run),
    leadership: () => (leads(member) ? fencingToken : null),
    onLeadership(run) {
      member.onLeadership.push(run)
      if (leads(member)) run(fencingToken)
    },
    leased: async () =>
      members
        .filter((each) => each.leased)
        .map((each) => ({
          number: each.number,
          name: 'test',
          version: '0',
          startedAtMs: 0,
          leads: leads(each),
          clockOffsetMs: 0,
        })),
    leasedOrOverSince: async () => {
      needLease(member)
      return members.filter((each) => each.leased).map(({ number }) => ({ number, name: `test ${number}` }))
    },
    count: () => Math.max(1, members.filter((each) => each.leased).length),
    holds: holdsFor(member),
    ask: (to, topic, question, withinMs) => ask(member, to, topic, question, withinMs),
    onQuestion: (topic, answer) => void member.topics.set(topic, answer),
  })

  const deliver = (member: Member): void => {
    if (member.standing.kind !== 'serving') return
    for (const committed of member.unpublished.splice(0)) for (const run of member.onForeign) run(committed)
  }

  const storeFor = (member: Member): Store => ({
    ...base,
    replicas: replicasFor(member),
    onForeignCommit: (run) => void member.onForeign.push(run),
    async commit({ unheld, ...change }, given) {
      needLease(member)
      if (given !== undefined && (!leads(member) || given.number !== fencingToken.number))
        throw new StaleReplica('another leads')
      if (unheld !== undefined && holdOf(unheld) !== null) return 'lost-race'
      const commit = base.commit(change)
      if (unheld !== undefined) lapsing.set(unheld, commit)
      const outcome = await commit.finally(() => unheld !== undefined && lapsing.delete(unheld))
      if (outcome === 'lost-race') return outcome
      for (const other of members.filter((each) => each !== member)) {
        other.unpublished.push({ ...outcome, origin: 'elsewhere' })
        setImmediate(() => deliver(other))
      }
      return outcome
    },
  })

  return () => {
    const member: Member = {
      number: members.length + 1,
      leased: true,
      mute: false,
      standing: standings.serving,
      topics: new Map(),
      onStanding: [],
      onLeadership: [],
      onForeign: [],
      unpublished: [],
    }
    members.push(member)
    leader ??= member
    const publishLeadership = (): void => {
      for (const each of members) for (const run of each.onLeadership) run(leads(each) ? fencingToken : null)
    }
    return {
      store: storeFor(member),
      die() {
        member.leased = false
        member.mute = true
      },
      mute: (is) => void (member.mute = is),
      stand(kind) {
        const before = leads(member)
        member.standing = standings[kind]
        deliver(member)
        for (const run of member.onStanding) run(member.standing)
        if (before !== leads(member)) publishLeadership()
      },
      lead() {
        leader = member
        fencingToken = { number: fencingToken.number + 1 }
        publishLeadership()
      },
    }
  }
}
