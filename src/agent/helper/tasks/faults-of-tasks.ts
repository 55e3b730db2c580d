// What is wrong on this host with what [tasks] of agent.toml lists, found before a task is sent: for `muster agent helper --check`.

import { processOwner, type Owner } from '#platform/files.ts'
import { openLimiter } from '#platform/limited-process.ts'
import { findProgram } from '#platform/run-program.ts'
import { findGroup, findUser } from '#platform/system-users.ts'
import { faultOfPath, readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import { mostStatementKeys } from '#wire/core/task-statements.ts'
import { readOwnType } from './own-types.ts'
import { faultOfExecutable, isShippedType, taskUser } from './prepared-task.ts'
import { keysIn } from './statement-file.ts'
import type { ListedFileDirectory, TasksToml } from './tasks-toml.ts'
import type { TaskRefusal } from './task-verbs.ts'

/** Sentences, none where all of it can be done. */
export const faultsOfTasks = (
  tasks: TasksToml,
  agentUser: Owner | null,
  trust: Trust,
  runs: 'unit' | 'child',
): readonly string[] => {
  const { allow, run, services, files, cleanup } = tasks
  const ownTypes = allow.filter((type) => !isShippedType(type))
  const runsPrograms = run.size > 0 || ownTypes.length > 0
  const folders = [...cleanup.values()].flatMap(({ directories, evidence }) => [...directories, evidence])
  return [
    ...faultsOfKeys(tasks.statementKeys, trust),
    ...(runsPrograms && openLimiter(runs) === null
      ? [
          'no program of a task is run: this host cannot limit one (controllers memory and pids; systemd-run, or a control group)',
        ]
      : []),
    ...(runsPrograms && runs === 'child' && processOwner().uid === 0 && findProgram('setpriv') === null
      ? ['no program of a task is run as another user: this host has no setpriv (util-linux)']
      : []),
    ...[...run].flatMap(([name, { executable, user }]) => [
      ...sentence(`tasks.run.${name}`, faultOfUser(user, agentUser)),
      ...sentence(`tasks.run.${name}`, faultOfExecutable(executable, trust)),
    ]),
    ...(services.size > 0 && findProgram('systemctl') === null ? ['tasks.services: there is no systemctl here'] : []),
    ...files.flatMap((listed) => faultsOfDirectory(listed, trust)).map((fault) => `tasks.files: ${fault}`),
    ...[...new Set(folders)].flatMap((folder) => unsafe(folder, trust)).map((fault) => `tasks.cleanup: ${fault}`),
    ...ownTypes.flatMap((type) => {
      const manifest = readOwnType({ tasks, trust }, type)
      if ('kind' in manifest) return sentence(type, manifest)
      return [
        ...sentence(type, faultOfUser(manifest.user, agentUser)),
        ...sentence(type, faultOfExecutable(manifest.executable, trust)),
      ]
    }),
  ]
}

const sentence = (what: string, refusal: TaskRefusal | null): readonly string[] =>
  refusal === null ? [] : [`${what}: ${refusal.why}`]

const faultOfUser = (name: string, agentUser: Owner | null): TaskRefusal | null => {
  const user = taskUser(name, agentUser)
  return user !== null && 'kind' in user ? user : null
}

/** What is wrong with a file of statement keys. */
export const faultsOfKeys = (file: string, trust: Trust): readonly string[] => {
  const read = readTrustedFile(file, trust, 64 * 1024)
  if ('fault' in read) return [`statement keys: ${read.fault}`]
  return keysIn(read.text) === null
    ? [`statement keys: ${file} is not a list of 1 to ${mostStatementKeys} public keys in PEM`]
    : []
}

const unsafe = (folder: string, trust: Trust): readonly string[] =>
  [faultOfPath(folder, trust, { kind: 'folder', links: 'refused' })].filter((fault) => fault !== null)

const faultsOfDirectory = ({ directory, owner, group }: ListedFileDirectory, trust: Trust): readonly string[] => [
  ...unsafe(directory, trust),
  ...(owner !== null && findUser(owner) === null ? [`${directory}: there is no user ${owner}`] : []),
  ...(group !== null && findGroup(group) === null ? [`${directory}: there is no group ${group}`] : []),
]
