// Nodes with a channel each, spread over several planes. Like an agent, a node that loses its channel opens another, at the
// next plane that answers and with the agent's own waits in between.

import assert from 'node:assert/strict'
import { fullJitterMs } from '#agent/core/backoff.ts'
import type { Random } from '#platform/random.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import type { Identity } from '../process/node-call.ts'
import { newSecret } from '../process/plane-records.ts'
import { openRawChannel, type NotOpened, type RawChannel } from '../process/raw-channel.ts'
import { rawNode } from '../process/raw-node.ts'
import { rawEvidence } from '../process/raw-recovery.ts'
import type { ReplicaDoor } from './enrollment-load.ts'

export type FleetNode = {
  readonly id: string
  readonly identity: Identity
  readonly evidence: AgentEvidence
  /** Null: it has no channel now. */
  channel(): RawChannel | null
  /** At which plane its channel is, or was last. */
  at(): number
  /** Every time it was without one: for how long, and what it was told meanwhile. */
  readonly absences: readonly Absence[]
  /** Its channel ends, if it has not, and it opens no other. */
  leave(): void
  hasLeft(): boolean
  /** It has noticed that its plane says nothing any more. */
  moveOn(): void
}

export type Absence = { readonly ms: number; readonly told: readonly string[] }

export type Fleet = {
  readonly nodes: readonly FleetNode[]
  /** Those that mean to have a channel and do not. */
  missing(): readonly string[]
}

export type FleetOptions = {
  readonly prefix: string
  readonly count: number
  /** Between two tries; left out: as an agent. */
  readonly longestWaitMs?: number
}

const firstWaitMs = 1000
const agentsLongestWaitMs = 30_000
/** Handshakes and enrollments under way at once. */
const atOnce = 16
const lookEveryMs = 10

/** Node number n starts at plane n modulo their number. */
export const joinFleet = async (
  t: Scope,
  doors: readonly ReplicaDoor[],
  random: Random,
  { prefix, count, longestWaitMs = agentsLongestWaitMs }: FleetOptions,
): Promise<Fleet> => {
  let over = false
  cleanup(t, () => {
    over = true
    for (const node of nodes) node.leave()
  })
  const nodes: FleetNode[] = []
  const join = async (number: number): Promise<void> => {
    const id = `${prefix}-${number}`
    const door = doors[number % doors.length] as ReplicaDoor
    const evidence = rawEvidence(id)
    const node = rawNode(door.target, 'ed25519', evidence)
    const enrolled = await node.enrollByToken(await newSecret(door.plane, id))
    assert.equal(enrolled.status, 200, `${id}: ${JSON.stringify(enrolled.body)}`)
    const kept = keepChannel(
      { doors, random, longestWaitMs, isOver: () => over },
      { id, evidence, identity: node.identity() },
      number,
    )
    nodes.push(kept.node)
    await kept.opened
    // Its first frame has been dealt with.
    await kept.node.channel()?.frame('config')
  }
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await join(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return {
    nodes,
    missing: () => nodes.filter((node) => node.channel() === null && !node.hasLeft()).map(({ id }) => id),
  }
}

type Surroundings = {
  readonly doors: readonly ReplicaDoor[]
  readonly random: Random
  readonly longestWaitMs: number
  isOver(): boolean
}

const keepChannel = (
  { doors, random, longestWaitMs, isOver }: Surroundings,
  { id, identity, evidence }: Pick<FleetNode, 'id' | 'identity' | 'evidence'>,
  first: number,
): { readonly node: FleetNode; readonly opened: Promise<void> } => {
  const absences: Absence[] = []
  let place = first
  let left = false
  let channel: RawChannel | null = null
  const open = async (): Promise<RawChannel | string> => {
    const { target } = doors[place % doors.length] as ReplicaDoor
    const answered = await openRawChannel(target, identity, id, { evidence }).catch(() => null)
    if (answered === null) return 'nobody answers'
    return 'frames' in answered ? answered : describe(answered)
  }
  const find = async (isFirst: boolean): Promise<void> => {
    const sinceMs = performance.now()
    const told: string[] = []
    for (let failures = 0; !isOver() && !left; failures++) {
      if (!isFirst) await pause(fullJitterMs(failures, firstWaitMs, longestWaitMs, random.unit()))
      const opened = await open()
      if (typeof opened !== 'string') {
        channel = opened
        absences.push({ ms: performance.now() - sinceMs, told })
        return
      }
      told.push(opened)
      if (isFirst) throw new Error(`${id}: ${opened}`)
      // As a balancer does: the next connection goes to the next plane.
      place++
    }
  }
  const keep = async (): Promise<void> => {
    while (!isOver() && !left) {
      while (channel !== null && !channel.ended()) await pause(lookEveryMs)
      channel = null
      place++
      await find(false)
    }
    channel?.destroy()
    channel = null
  }
  const node: FleetNode = {
    ...{ id, identity, evidence, absences },
    channel: () => (channel !== null && channel.ended() ? null : channel),
    at: () => place % doors.length,
    leave() {
      left = true
      channel?.destroy()
    },
    hasLeft: () => left,
    moveOn: () => channel?.destroy(),
  }
  const opened = find(true)
  void opened.then(keep, () => {})
  return { node, opened }
}

const describe = ({ status, body }: NotOpened): string => `${status} ${body.code}`

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
