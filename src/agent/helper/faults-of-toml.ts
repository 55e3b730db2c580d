// What is wrong on this host with what agent.toml lists, found before anything is asked for: for `muster agent helper --check`.

import type { Owner } from '#platform/files.ts'
import { findProgram } from '#platform/run-program.ts'
import { findGroup, findUser } from '#platform/system-users.ts'
import { faultOfPath, readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { allFromPem } from '#pki/pem.ts'
import type { AgentToml, ListedDirectory, ListedProgram, ListedReload } from './agent-toml.ts'
import { faultOfProgram, howToRun, userOf } from './run-listed.ts'
import { defaultStatementKeys, pinsStatementKeys } from './tasks/tasks-toml.ts'
import { longestRoots } from './write-output.ts'

/** Sentences, none where all of it can be done. `agentUser`: who may open the socket; null: the user of the helper. */
export const faultsOfToml = async (
  toml: AgentToml,
  agentUser: Owner | null,
  trust: Trust,
  statementKeys = defaultStatementKeys,
): Promise<readonly string[]> => {
  const { programRoots, outsideRoots, outputs, reloads, services, checks, tasks } = toml
  // Loaded where it is needed: every helper would have it in its memory.
  const ofTasks =
    tasks === null
      ? []
      : (await import('./tasks/faults-of-tasks.ts')).faultsOfTasks(tasks, agentUser, trust, howToRun(trust))
  const programs = [
    ...[...services].map(([name, listed]) => [`service ${name}`, listed] as const),
    ...[...checks].flatMap(([name, listed]) => (listed.kind === 'program' ? [[`check ${name}`, listed] as const] : [])),
  ]
  return [
    ...(programRoots === null ? [] : faultsOfRoots(programRoots, trust).map((fault) => `programs.roots: ${fault}`)),
    ...(outsideRoots === null
      ? []
      : faultsOfRoots(outsideRoots, trust).map((fault) => `programs.outside_roots: ${fault}`)),
    ...outputs.flatMap((listed) => faultsOfDirectory(listed, trust)).map((fault) => `outputs: ${fault}`),
    ...[...reloads].flatMap(([name, reload]) => faultsOfReload(`reload ${name}`, reload, trust)),
    ...programs.flatMap(([what, listed]) => faultsOfListed(what, listed, agentUser, trust)),
    ...ofTasks,
    ...(programs.length + checks.size > 0 ? await faultsOfStatements(toml, trust, statementKeys) : []),
  ]
}

/** Those of the keys of [tasks] are named with it. */
const faultsOfStatements = async (
  { node, tasks }: AgentToml,
  trust: Trust,
  statementKeys: string,
): Promise<readonly string[]> => {
  if (!pinsStatementKeys({ tasks }, statementKeys)) return []
  const { faultsOfKeys } = await import('./tasks/faults-of-tasks.ts')
  return [
    ...(tasks === null ? faultsOfKeys(statementKeys, trust) : []),
    ...(node === null ? ['services and checks take a statement for this node, and agent.toml has no [node]'] : []),
  ]
}

const faultsOfRoots = (file: string, trust: Trust): readonly string[] => {
  const read = readTrustedFile(file, trust, longestRoots)
  if ('fault' in read) return [read.fault]
  return allFromPem('CERTIFICATE', read.text) === null ? [`${file} is not a list of certificates in PEM`] : []
}

const faultsOfDirectory = ({ directory, owners, groups }: ListedDirectory, trust: Trust): readonly string[] => [
  ...[faultOfPath(directory, trust, { kind: 'folder', links: 'refused' })].filter((fault) => fault !== null),
  ...owners.filter((name) => findUser(name) === null).map((name) => `${directory}: there is no user ${name}`),
  ...groups.filter((name) => findGroup(name) === null).map((name) => `${directory}: there is no group ${name}`),
]

const faultsOfReload = (what: string, reload: ListedReload, trust: Trust): readonly string[] => {
  if (reload.kind === 'unit') return findProgram('systemctl') === null ? [`${what}: there is no systemctl here`] : []
  const { user, command } = reload
  return [
    ...(user === null || findUser(user) !== null ? [] : [`${what}: there is no user ${user}`]),
    ...faultsOfExecutable(what, command[0] ?? '', trust),
  ]
}

const faultsOfListed = (
  what: string,
  listed: ListedProgram,
  agentUser: Owner | null,
  trust: Trust,
): readonly string[] => {
  const user = userOf(what, listed, agentUser)
  return [
    ...(user !== null && 'code' in user ? [user.message] : []),
    ...faultsOfExecutable(what, listed.executable, trust),
  ]
}

const faultsOfExecutable = (what: string, executable: string, trust: Trust): readonly string[] => {
  const fault = faultOfProgram(executable, trust)
  return fault === null ? [] : [`${what}: ${fault.message}`]
}
