// Names for shell completion, asked of the plane.

import { AlertListAnswer } from '#wire/alerts/alert-api.ts'
import { KeyListAnswer, NodeListAnswer, ProfileListAnswer, TokenListAnswer } from '#wire/api/operator-api.ts'
import { VClusterListAnswer } from '#wire/fleet/vcluster-api.ts'
import { nodeIdShape } from '#wire/api/node-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import type { Candidate, KnownNames } from './complete-words.ts'
import { connect } from './operator-client.ts'

/** Nobody waits longer than this for a Tab. */
const timeoutMs = 1500

export const planeNames = async (
  cli: Cli,
  options: GlobalOptions,
  names: KnownNames,
  typed: string,
): Promise<readonly Candidate[]> => {
  const plane = connect(cli, options)
  const get = { method: 'GET', timeoutMs } as const
  switch (names) {
    case 'nodes': {
      // Nodes come in the order of their ids, so a page that starts at what was typed has the ones that matter.
      const after = new RegExp(nodeIdShape).test(typed) ? typed : undefined
      const { nodes } = await plane.ask({
        ...get,
        path: '/v1/nodes',
        query: { after, limit: 200 },
        answer: NodeListAnswer,
      })
      return nodes.map((node) => [node.id, `${node.membership}, ${node.profile}`])
    }
    case 'profiles': {
      const { profiles } = await plane.ask({ ...get, path: '/v1/profiles', answer: ProfileListAnswer })
      return profiles.map((profile) => [profile.name, profile.description])
    }
    case 'tokens': {
      const { tokens } = await plane.ask({ ...get, path: '/v1/tokens', answer: TokenListAnswer })
      return tokens.filter((token) => token.state === 'unused').map((token) => [token.id, token.node ?? 'any node'])
    }
    case 'alerts': {
      const { alerts } = await plane.ask({ ...get, path: '/v1/alerts', answer: AlertListAnswer })
      return alerts.filter(({ state }) => state === 'open').map((alert) => [alert.id, `${alert.kind} ${alert.subject}`])
    }
    case 'vclusters': {
      const { vclusters } = await plane.ask({ ...get, path: '/v1/vclusters', answer: VClusterListAnswer })
      return vclusters.map((vcluster) => [vcluster.name, vcluster.description])
    }
    case 'keys': {
      const { keys } = await plane.ask({ ...get, path: '/v1/keys', answer: KeyListAnswer })
      return keys.filter((key) => key.revoked_at === null).map((key) => [key.id, `${key.name}, ${key.role}`])
    }
  }
}
