// The helper: does on the host what the agent, which faces the network, may not (ruling 21). It has no network of its own, listens
// on a Unix socket that only the agent's user can open, and runs until it is stopped.

import * as path from 'node:path'
import { makeFolder, type Owner } from '#platform/files.ts'
import { listenForLines, type SocketPlace } from '#platform/line-server.ts'
import { faultOfPath } from '#platform/trusted-path.ts'
import { openVerbs, refusalLine, type HelperHost } from './perform-verb.ts'
import { readAgentToml } from './read-agent-toml.ts'
import { pinsStatementKeys } from './tasks/tasks-toml.ts'
import { mostTurns } from './turns.ts'
import { longestRequest, refused, type Refused } from './verbs.ts'
import { faultOfState } from './written-lists.ts'

export type HelperOptions = {
  readonly agentToml: string
  readonly socket: { readonly fd: number } | { readonly path: string }
  /** Who may open the socket; null: the user of the helper. */
  readonly agentUser: Owner | null
  /** Where it keeps which lists it has written. */
  readonly stateFolder: string
}

export type RunningHelper = { close(): Promise<void> }

/**
 * The agent holds one connection; a second one is there while it starts anew. What waits for its turn keeps no other request from
 * being read: there is room for eight more.
 */
const bounds = { connections: 4, longestLine: longestRequest, underWay: mostTurns + 8 }

/** Refused where agent.toml, the folder of the socket or that of its state is not as it must be: a helper that could do nothing does not start. */
export const startHelper = async (host: HelperHost, options: HelperOptions): Promise<RunningHelper | Refused> => {
  const { agentToml, agentUser, socket } = options
  const stateFolder = path.resolve(options.stateFolder)
  const read = readAgentToml(agentToml, host.trust)
  if (read.kind === 'refused') return read
  const place: SocketPlace =
    'fd' in socket
      ? { kind: 'descriptor', fd: socket.fd }
      : { kind: 'path', path: path.resolve(socket.path), owner: agentUser }
  if (place.kind === 'path') {
    const folder = path.dirname(place.path)
    makeFolder(folder, 0o755)
    const fault = faultOfPath(folder, host.trust, { kind: 'folder', links: 'followed' })
    if (fault !== null) return refused('PATH_UNSAFE', `The socket cannot be in ${folder}: ${fault}`)
  }
  const unkept = faultOfState(stateFolder, host.trust)
  if (unkept !== null) return unkept
  const verbs = openVerbs(host, { agentToml, agentUser, stateFolder })
  const server = await listenForLines(place, bounds, {
    answer: (line) => verbs.perform(line),
    tooLong: refusalLine(null, refused('TOO_LONG', `A request has at most ${longestRequest} bytes`)),
    tooMany: refusalLine(null, refused('BUSY', `There are ${bounds.connections} connections already`)),
  })
  if (read.toml.services.size + read.toml.checks.size > 0 && !pinsStatementKeys(read.toml))
    host.log.warn(
      'services and checks are started at the word of the agent: this host has pinned no statement keys (muster agent trust)',
    )
  // An agent that asks before that is over waits for it.
  void verbs.takeUpTasks()
  return {
    close: async () => {
      await server.close()
      await verbs.close()
    },
  }
}
