// A real agent that belongs to a plane as a node of a known name, and what it says of itself.

import { readStatusFile, type StatusFile } from '#agent/diagnostics/status-file.ts'
import type { Scope } from './cleanup.ts'
import { eventually, type Patience } from './eventually.ts'
import type { Reply } from './operator-call.ts'
import { startAgent, type Agent, type AgentOptions } from './start-agent.ts'
import type { Plane } from './start-plane.ts'

export type Member = Agent & {
  readonly id: string
  /** Null for a moment, or before its first word. */
  says(): StatusFile | null
}

/** What there is of an agent that shares its process with others. */
export type Speaking = Pick<Member, 'id' | 'says' | 'stderr'>

export type MemberOptions = Omit<AgentOptions, 'join'> & { readonly id: string; readonly profile: string }

export const joinMember = async (t: Scope, plane: Plane, options: MemberOptions): Promise<Member> => {
  const { id, profile, ...rest } = options
  const { status, body } = await tokenFor(plane, id, profile)
  if (status >= 300) throw new Error(`no token for ${id}: ${JSON.stringify(body)}`)
  const agent = startAgent(t, { ...rest, join: body.join })
  return { ...agent, id, says: () => readStatusFile(agent.state) }
}

/** A replica that got no processor for ten seconds says that it is behind, and is asked again, as an operator would. */
const tokenFor = async (plane: Plane, node: string, profile: string): Promise<Reply> => {
  const made = await plane.api('POST', '/v1/tokens', { node, profile })
  if (made.body.code !== 'REPLICA_BEHIND') return made
  await eventually('the replica to have caught up', async () => (await plane.api('GET', '/v1/nodes')).status === 200, {
    withinMs: 60_000,
  })
  return tokenFor(plane, node, profile)
}

export const untilConnected = (
  members: readonly Speaking[],
  patience: Patience = { withinMs: 60_000 },
): Promise<true> =>
  eventually('every agent to have a channel', () => members.every((member) => member.says()?.channel.open), {
    everyMs: 100,
    ...patience,
  }).catch((error: unknown) => {
    const without = members.filter((member) => !member.says()?.channel.open)
    throw new Error(without.map(({ id, stderr }) => `${id}:\n${stderr().slice(-2000)}`).join('\n'), { cause: error })
  })

/** A profile like the default one but for what is said here. */
export const makeProfile = async (plane: Plane, name: string, settings: readonly string[]): Promise<void> => {
  const { code, stderr } = await plane.muster('profile', 'create', name, ...settings)
  if (code !== 0) throw new Error(`no profile ${name}: ${stderr}`)
}
