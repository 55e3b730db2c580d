// Names for shell completion, asked of the plane.

import { nodeIdShape } from '#wire/core/shapes.ts'
import { nodeApi } from '#wire/node/node-api.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import { tokenApi } from '#wire/enrollment/token-api.ts'
import { alertApi } from '#wire/alerts/alert-api.ts'
import { vclusterApi } from '#wire/fleet/vcluster-api.ts'
import { keyApi } from '#wire/operators/key-api.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import type { Candidate, KnownNames } from './complete-words.ts'
import { connect } from './operator-client.ts'

/** The longest time that completion may take. */
const timeoutMs = 1500

export const planeNames = async (
  cli: Cli,
  options: GlobalOptions,
  names: KnownNames,
  typed: string,
): Promise<readonly Candidate[]> => {
  const plane = connect(cli, options)
  switch (names) {
    case 'nodes': {
      // Nodes come in the order of their ids, so a page that starts at what was typed has the ones that matter.
      const after = new RegExp(nodeIdShape).test(typed) ? typed : undefined
      const { nodes } = await plane.ask(nodeApi.list, { query: { after, limit: 200 }, timeoutMs })
      return nodes.map((node) => [node.id, `${node.state}, ${node.profile}`])
    }
    case 'profiles': {
      const { profiles } = await plane.ask(settingsApi.profiles, { timeoutMs })
      return profiles.map((profile) => [profile.name, profile.description])
    }
    case 'tokens': {
      const { tokens } = await plane.ask(tokenApi.list, { timeoutMs })
      return tokens.filter((token) => token.state === 'unused').map((token) => [token.id, token.node ?? 'any node'])
    }
    case 'alerts': {
      const { alerts } = await plane.ask(alertApi.list, { timeoutMs })
      return alerts.filter(({ state }) => state === 'open').map((alert) => [alert.id, `${alert.kind} ${alert.subject}`])
    }
    case 'vclusters': {
      const { vclusters } = await plane.ask(vclusterApi.list, { timeoutMs })
      return vclusters.map((vcluster) => [vcluster.name, vcluster.description])
    }
    case 'keys': {
      const { keys } = await plane.ask(keyApi.list, { timeoutMs })
      return keys.filter((key) => key.revoked_at === null).map((key) => [key.id, `${key.name}, ${key.role}`])
    }
  }
}
