// What the helper starts for an overlay: as far as agent.toml allows it, and on a host with pinned statement keys as the plane has
// signed it.

import type { Owner } from '#platform/files.ts'
import type { Trust } from '#platform/trusted-path.ts'
import type { AgentToml } from './agent-toml.ts'
import { listingOf, type ServiceOrder } from './listed-services.ts'
import { signedCheck, signedService, type UnsafeFolder } from './overlay/judge-overlay.ts'
import type { OverlayGuard } from './overlay/overlay-guard.ts'
import type { OverlayRefusal } from './overlay/overlay-verbs.ts'
import { argumentsFor, environmentFor, faultOfProgram, userOf } from './run-listed.ts'
import { refused, type Refused, type RequestOf } from './verbs.ts'

export const unsigned = (refusal: OverlayRefusal | UnsafeFolder): Refused =>
  refusal.kind === 'folder-unsafe'
    ? refused('PATH_UNSAFE', refusal.why)
    : refused('STATEMENT_REFUSED', `${refusal.fault}: ${refusal.why}`)

/** As the plane has signed it; on a host that asks for no statement as the agent asks for it. */
const signedRequest = (
  toml: AgentToml,
  given: RequestOf<'service.start'>,
  guard: OverlayGuard,
): RequestOf<'service.start'> | Refused => {
  const statement = guard.inForce(toml)
  if (statement === null) return given
  const signed = 'fault' in statement ? statement : signedService(statement, given.name, given.overlay)
  return 'why' in signed ? unsigned(signed) : { ...given, ...signed }
}

/** The arguments of a check, verified in the same way. */
export const signedArguments = (
  toml: AgentToml,
  given: RequestOf<'check.run'>,
  guard: OverlayGuard,
): { readonly arguments: readonly string[] } | Refused => {
  const statement = guard.inForce(toml)
  if (statement === null) return given
  const signed = 'fault' in statement ? statement : signedCheck(statement, given.name, given.overlay)
  return 'why' in signed ? unsigned(signed) : signed
}

/** What is started, as far as agent.toml allows it and, where keys are pinned, the plane has signed it. */
export const orderFor = (
  toml: AgentToml,
  asked: RequestOf<'service.start'>,
  guard: OverlayGuard,
  agentUser: Owner | null,
  trust: Trust,
): ServiceOrder | Refused => {
  const listed = toml.services.get(asked.name)
  if (listed === undefined) return refused('NOT_ALLOWED', `agent.toml lists no service ${asked.name}`)
  const given = signedRequest(toml, asked, guard)
  if ('code' in given) return given
  const { name, digest, restart, environment, working_directory } = given
  const words = argumentsFor(name, listed, given.arguments)
  if ('code' in words) return words
  const user = userOf(name, listed, agentUser)
  if (user !== null && 'code' in user) return user
  const set = environmentFor(name, listed, environment)
  if ('code' in set) return set
  // A program may read what lies where it is started: an agent that chose the place would choose what is run.
  if (working_directory !== null && working_directory !== listed.workingDirectory)
    return refused(
      'NOT_ALLOWED',
      `agent.toml does not list ${working_directory} for service ${name}: working_directory`,
    )
  const fault = faultOfProgram(listed.executable, trust)
  if (fault !== null) return fault
  const command = [listed.executable, ...words.words]
  const cwd = listed.workingDirectory ?? '/'
  const limits = {
    memoryBytes: given.limits?.memory_bytes ?? null,
    cpus: given.limits?.cpus ?? null,
    openFiles: given.limits?.open_files ?? null,
  }
  return { name, digest, restart, command, user, env: set.env, cwd, limits, listing: listingOf(listed) }
}
