// Load on a plane that is about to be killed: nodes that live their lives as fast as they are answered, and a record of
// what each was told. Only a reply that arrived completely is an acknowledgement.

import type { Random } from '#platform/random.ts'
import type { Identity, NodeTarget } from '../process/node-call.ts'
import type { Reply } from '../process/operator-call.ts'
import { newSecret } from '../process/plane-records.ts'
import { rawNode, type RawNode, type Renewal } from '../process/raw-node.ts'
import type { Plane } from '../process/start-plane.ts'

export type Life = {
  readonly id: string
  readonly node: RawNode
  readonly secret: string
  /** Certificates it was given, oldest first; the last is the one it uses. */
  readonly acknowledged: Identity[]
  /** The request that was under way when the plane went away; null when none was. */
  underWay: 'enroll' | 'confirm' | 'revoke' | { readonly renew: Renewal } | null
  revoked: boolean
}

export type Load = {
  readonly lives: readonly Life[]
  acknowledgements(): number
  /** When every lane has noticed that the plane is gone. */
  readonly over: Promise<void>
}

const mostRenewals = 3

/** Goes on until the plane goes away; any other trouble rejects `over`. */
export const startLives = (
  plane: Plane,
  target: NodeTarget,
  random: Random,
  options: { readonly lanes: number; readonly prefix: string; readonly onAcknowledged: (count: number) => void },
): Load => {
  const lives: Life[] = []
  let count = 0
  const acknowledged = (what: string, { status, body }: Reply): void => {
    if (status !== 200) throw new Refused(`${what}: ${status} ${JSON.stringify(body)}`)
    count++
    options.onAcknowledged(count)
  }

  const live = async (life: Life): Promise<void> => {
    const { node, id } = life
    life.underWay = 'enroll'
    acknowledged(`${id} enrolls`, await node.enrollByToken(life.secret))
    life.acknowledged.push(node.identity())
    life.underWay = 'confirm'
    acknowledged(`${id} confirms`, await node.confirm())
    life.underWay = null
    for (let renewals = Math.floor(random.unit() * (mostRenewals + 1)); renewals > 0; renewals--) {
      const request = node.newRenewal()
      life.underWay = { renew: request }
      const { reply, identity } = await node.renew(request)
      acknowledged(`${id} renews`, reply)
      if (identity !== null) life.acknowledged.push(identity)
      life.underWay = null
      if (identity !== null) node.use(identity)
    }
    if (random.unit() < 0.5) return
    life.underWay = 'revoke'
    acknowledged(`${id} is revoked`, await plane.api('POST', `/v1/nodes/${id}/revoke`, { reason: 'load' }))
    life.revoked = true
    life.underWay = null
  }

  const lane = async (name: number): Promise<void> => {
    try {
      for (let number = 0; ; number++) {
        const id = `${options.prefix}-${name}-${number}`
        const secret = await newSecret(plane, id)
        const life: Life = { id, node: rawNode(target), secret, acknowledged: [], underWay: null, revoked: false }
        lives.push(life)
        await live(life)
      }
    } catch (error) {
      if (error instanceof Refused || !isConnectionGone(error)) throw error
    }
  }
  const over = Promise.all(Array.from({ length: options.lanes }, (_, name) => lane(name))).then(() => {})
  return { lives, acknowledgements: () => count, over }
}

class Refused extends Error {}

/** How the death of the other side looks from here; ENOENT is its socket, which the next start replaces. */
const isConnectionGone = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ENOENT', 'ERR_STREAM_PREMATURE_CLOSE'].includes(String(error.code))
