// Machines that enroll at several planes as fast as they are answered, and a record of what each was answered. A machine that
// gets no answer, or is asked to retry later, sends the same again, to any plane; only a reply that arrived is an
// acknowledgement.

import { X509Certificate } from 'node:crypto'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { Random } from '#platform/random.ts'
import { fairNowMs } from '../process/fair-time.ts'
import { nodeCall, type NodeTarget } from '../process/node-call.ts'
import type { Reply } from '../process/operator-call.ts'
import type { Plane } from '../process/start-plane.ts'

export type Machine = {
  readonly id: string
  /** The token's id, once its creation was acknowledged. */
  readonly token: string
  /** Serials that callers with the token were given: one, if all is well. */
  readonly serials: Set<string>
}

export type EnrollmentLoad = {
  readonly machines: readonly Machine[]
  /** Acknowledged writes: tokens and certificates. */
  acknowledged(): number
  /** The longest time without one, so far, since the load began or since the last time this was asked. */
  takeLongestGapMs(): number
  /** Every machine finishes what it has begun. Rejects with an answer that should not have been given. */
  stop(): Promise<void>
}

export type ReplicaDoor = { readonly plane: Plane; readonly target: NodeTarget }

const patienceMs = 90_000
const pauseMs = 200

export const startEnrollmentLoad = (
  doors: readonly ReplicaDoor[],
  random: Random,
  { lanes, prefix }: { readonly lanes: number; readonly prefix: string },
): EnrollmentLoad => {
  const machines: Machine[] = []
  let stopping = false
  let count = 0
  let lastMs = performance.now()
  let longestMs = 0
  const acknowledged = (): void => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
    count++
  }
  const anyDoor = (): ReplicaDoor => {
    const door = doors[Math.floor(random.unit() * doors.length)]
    if (door === undefined) throw new Error('there are no planes')
    return door
  }

  /** Until it is answered for good: a refusal is such an answer, and for the caller to judge. */
  const insist = async (what: string, ask: (door: ReplicaDoor) => Promise<Reply>): Promise<Reply> => {
    const untilMs = fairNowMs() + patienceMs
    for (let last: unknown; ;) {
      try {
        const reply = await ask(anyDoor())
        if (reply.status < 500) return reply
        if (reply.status !== 503) throw new Wrong(`${what}: ${reply.status} ${JSON.stringify(reply.body)}`)
        last = reply.body
      } catch (error) {
        if (error instanceof Wrong) throw error
        last = error
      }
      if (fairNowMs() > untilMs) throw new Wrong(`${what}: not within ${patienceMs} ms: ${JSON.stringify(last)}`)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  const invite = async (id: string): Promise<{ machine: Machine; secret: string }> => {
    const { status, body } = await insist(`a token for ${id}`, ({ plane }) =>
      plane.api('POST', '/v1/tokens', { node: id }),
    )
    if (status !== 201) throw new Wrong(`a token for ${id}: ${status} ${JSON.stringify(body)}`)
    acknowledged()
    const machine = { id, token: body.token.id, serials: new Set<string>() }
    machines.push(machine)
    return { machine, secret: body.secret }
  }
  /** Each call of one machine is the same request, with the same key, at whichever plane. */
  const enroll = async (machine: Machine, secret: string): Promise<'admitted' | 'refused'> => {
    const request = { method: 'token', enrollment_token: secret, csr: makeCsr(generateKey('ed25519'), 'node') }
    const { status, body } = await insist(`${machine.id} enrolls`, ({ target }) =>
      nodeCall(target, null, 'POST', '/v1/enroll', request),
    )
    if (status === 200) {
      acknowledged()
      machine.serials.add(serialOf(body.certificate_chain))
      return 'admitted'
    }
    if (body.code !== 'TOKEN_USED') throw new Wrong(`${machine.id}: ${status} ${JSON.stringify(body)}`)
    return 'refused'
  }

  const lane = async (name: number): Promise<void> => {
    for (let number = 0; !stopping; number++) {
      const { machine, secret } = await invite(`${prefix}-${name}-${number}`)
      // Two with the same token: whatever becomes of planes and databases meanwhile, one of them gets a certificate.
      const outcomes = await Promise.all([enroll(machine, secret), enroll(machine, secret)])
      const admitted = outcomes.filter((outcome) => outcome === 'admitted').length
      if (admitted !== 1) throw new Wrong(`${machine.id}: ${admitted} of two callers with one token were admitted`)
    }
  }
  const over = Promise.all(Array.from({ length: lanes }, (_, name) => lane(name)))
  // Reported when the load is stopped, which is when a test waits for it.
  over.catch(() => {})
  return {
    machines,
    acknowledged: () => count,
    takeLongestGapMs() {
      const longest = longestMs
      longestMs = 0
      return longest
    },
    async stop() {
      stopping = true
      await over
    },
  }
}

class Wrong extends Error {}

/** As the store writes it. */
const serialOf = (chainPem: string): string => BigInt(`0x${new X509Certificate(chainPem).serialNumber}`).toString(16)
