// `muster agent helper`: the process beside the agent that has the rights the agent has not. Its options, and why it does not start.

import * as path from 'node:path'
import type { AgentToml } from '#agent/helper/agent-toml.ts'
import { faultsOfToml } from '#agent/helper/faults-of-toml.ts'
import { startHelper } from '#agent/helper/main.ts'
import { readAgentToml } from '#agent/helper/read-agent-toml.ts'
import { helperSettings } from '#agent/helper/settings.ts'
import { keysIn } from '#agent/helper/tasks/statement-file.ts'
import { defaultStatementKeys, directoriesOfTasks, pinsStatementKeys } from '#agent/helper/tasks/tasks-toml.ts'
import { defaultSocket, type Refused } from '#agent/helper/verbs.ts'
import { defaultHelperState } from '#agent/helper/written-lists.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { showSettings } from '#cli/kit/show-settings.ts'
import { processOwner, type Owner } from '#platform/files.ts'
import { resolveSettings, type Values } from '#platform/given-settings.ts'
import { socketOfSystemd } from '#platform/line-server.ts'
import { coalesced } from '#platform/coalesced-log.ts'
import { openLog } from '#platform/log.ts'
import { stopSignal } from '#platform/signals.ts'
import { findUser } from '#platform/system-users.ts'
import { ownTrust, readTrustedFile } from '#platform/trusted-path.ts'
import { keyId } from '#pki/keys.ts'

type PrivilegedOptions = GlobalOptions & {
  readonly printUnit?: boolean
  readonly check?: boolean
  readonly checkConfig?: boolean
}

type HelperValues = Values<typeof helperSettings>

/** Runs until it is stopped; with --check, --check-config or --print-unit it only reads agent.toml. */
export const agentHelper = async (cli: Cli, options: PrivilegedOptions): Promise<void> => {
  const { values, problems } = resolveSettings(helperSettings, { options: { ...options }, env: cli.env, file: null })
  if (options.checkConfig === true) return checkHelper(cli, options, values, problems)
  if (problems.length > 0) throw usageFailure(`${problems[0]}.`, 'muster agent helper --help')
  const agentToml = path.resolve(values.config.value)
  if (options.printUnit === true) return printUnit(cli, options, agentToml)
  if (options.check === true) return showAllowed(cli, options, values, agentToml)
  const signal = stopSignal()
  const { clock, timers, random } = cli
  // An agent that asks for what is refused, again and again, must not fill the disk.
  const { log, flush } = coalesced({
    log: openLog({ logLevel: values.logLevel.value, logFormat: values.log.value }, 'helper'),
    clock,
    timers,
  })
  const socket = socketOf(cli, values)
  const agentUser = agentUserOf(values)
  const helper = await startHelper(
    { clock, timers, random, log, trust: ownTrust() },
    { agentToml, socket, agentUser, stateFolder: stateFolderOf(values, socket) },
  ).catch((error: unknown) => {
    throw new Failure({
      exit: exitCodes.misconfigured,
      code: 'SOCKET_UNUSABLE',
      sentence: 'The helper cannot listen on its socket.',
      detail: error instanceof Error ? error.message : String(error),
      next: 'muster agent helper --socket PATH, in a folder that only its user can change',
    })
  })
  if ('kind' in helper) throw misconfigured(helper)
  log.info({ agentToml, socket }, 'ready')
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  await helper.close()
  flush()
}

type Socket = { readonly fd: number } | { readonly path: string }

const socketOf = (cli: Cli, { socket }: HelperValues): Socket => {
  const fd = socketOfSystemd(cli.env)
  if (fd !== null) return { fd }
  const runtime = cli.env['XDG_RUNTIME_DIR']
  const usual =
    processOwner().uid === 0 || runtime === undefined ? defaultSocket : `${runtime}/muster-agent-helper/socket`
  return { path: socket.value ?? usual }
}

const stateFolderOf = ({ state }: HelperValues, socket: Socket): string =>
  state.value ?? (processOwner().uid === 0 || 'fd' in socket ? defaultHelperState : path.dirname(socket.path))

const usualAgentUser = 'muster-agent'

/** Null: who started it by hand runs the agent too. */
const agentUserOf = ({ agentUser }: HelperValues): Owner | null => {
  const own = processOwner()
  if (agentUser.value === null && own.uid !== 0) return null
  const name = agentUser.value ?? usualAgentUser
  const user = findUser(name)
  if (user === null) {
    throw usageFailure(`There is no user ${name} on this host.`, 'muster agent helper --agent-user USER')
  }
  if (own.uid !== 0 && user.uid !== own.uid) {
    throw usageFailure('Only root can give its socket to another user.', 'Run it as root, or without --agent-user')
  }
  return user
}

const allowedBy = (agentToml: string): AgentToml => {
  const read = readAgentToml(agentToml, ownTrust())
  if (read.kind === 'refused') throw misconfigured(read)
  return read.toml
}

const misconfigured = ({ code, message }: Refused): Failure =>
  new Failure({
    exit: exitCodes.misconfigured,
    code,
    sentence: `${message}.`,
    next: 'Correct it, and look at it again: muster agent helper --check',
  })

/** What its unit lacks until it knows this host: everything but the directories that agent.toml lists is read-only for it. */
export const unitAddition = (file: string, { outputs, tasks }: AgentToml): string => {
  const directories = [
    ...outputs.map(({ directory }) => directory),
    ...(tasks === null ? [] : directoriesOfTasks(tasks)),
  ]
  return [
    `# Made by "muster agent helper --print-unit" from ${file}: make it again when that file lists other directories.`,
    '# For /etc/systemd/system/muster-agent-helper.service.d/host.conf',
    '[Service]',
    ...directories.map((directory) => `ReadWritePaths=-${directory}`),
    ...(directories.some((directory) => /^\/(home|root|run\/user)(\/|$)/.test(directory))
      ? ['ProtectHome=read-only']
      : []),
  ].join('\n')
}

const printUnit = (cli: Cli, options: PrivilegedOptions, agentToml: string): void => {
  const unit = unitAddition(agentToml, allowedBy(agentToml))
  printer(cli, options).answer({ unit }, () => unit.split('\n'))
}

/** What is allowed, and what is wrong with the places, the users and the programs it names. */
const showAllowed = async (
  cli: Cli,
  options: PrivilegedOptions,
  values: HelperValues,
  agentToml: string,
): Promise<void> => {
  const toml = allowedBy(agentToml)
  const { node, programRoots, outputs, reloads, services, checks, tasks } = toml
  const agentUser = processOwner().uid === 0 ? findUser(values.agentUser.value ?? usualAgentUser) : null
  const faults = await faultsOfToml(toml, agentUser, ownTrust())
  const allowed = {
    node,
    roots: programRoots,
    outputs: outputs.map(({ directory }) => directory),
    reloads: [...reloads.keys()],
    services: [...services.keys()],
    checks: [...checks.keys()],
    tasks: [...(tasks?.allow ?? [])],
    statement_keys: pinnedBy(toml),
    faults,
  }
  const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))
  printer(cli, options).answer(allowed, () => [
    `node      ${node === null ? 'not said: no output can be written' : `${node.id} of ${node.domain}`}`,
    `roots     ${programRoots ?? 'not said: no output can be written'}`,
    `outputs   ${listed(allowed.outputs)}`,
    `reloads   ${listed(allowed.reloads)}`,
    `services  ${listed(allowed.services)}`,
    `checks    ${listed(allowed.checks)}`,
    `tasks     ${tasks === null ? 'none: there is no [tasks]' : listed(allowed.tasks)}`,
    `keys      ${allowed.statement_keys === null ? 'none pinned: services and checks are started as the agent says' : listed(allowed.statement_keys)}`,
    ...faults.map((fault) => `wrong     ${printable(fault)}`),
  ])
  if (faults.length > 0) cli.exit.finish(exitCodes.misconfigured)
}

/** The ids of the statement keys, none where they cannot be read; null: this host pins none. */
const pinnedBy = (toml: AgentToml): readonly string[] | null => {
  if (!pinsStatementKeys(toml)) return null
  const read = readTrustedFile(toml.tasks?.statementKeys ?? defaultStatementKeys, ownTrust(), 64 * 1024)
  const keys = 'fault' in read ? null : keysIn(read.text)
  return (keys ?? []).map((key) => keyId(Buffer.from(key, 'base64')))
}

/** Its settings, and what `--check` finds wrong. */
const checkHelper = async (
  cli: Cli,
  options: PrivilegedOptions,
  values: HelperValues,
  problems: readonly string[],
): Promise<void> => {
  const read = problems.length > 0 ? null : readAgentToml(path.resolve(values.config.value), ownTrust())
  const name = values.agentUser.value ?? usualAgentUser
  const needsUser = values.agentUser.value !== null || processOwner().uid === 0
  const user = needsUser ? findUser(name) : null
  const faults =
    read === null ? [] : read.kind === 'refused' ? [read.message] : await faultsOfToml(read.toml, user, ownTrust())
  const missing =
    needsUser && user === null
      ? [`there is no user ${name} on this host: name the user of the agent with --agent-user USER`]
      : []
  const checked = {
    settings: helperSettings,
    follows: {},
    values,
    file: null,
    problems,
    faults: [...missing, ...faults],
    warnings: [],
  }
  showSettings(cli, options, checked)
}
