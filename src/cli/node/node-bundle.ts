// What is carried to a machine: a token or a join string in a shape that provisioning takes, or an emergency credential.

import { readFileIfAny } from '#platform/files.ts'
import { createFile } from '#platform/folder.ts'
import { packagedText } from '#platform/packaged.ts'
import { tokenApi } from '#wire/enrollment/token-api.ts'
import {
  givenSource,
  refuseForHardware,
  refuseWithoutAgents,
  sourceOfPlane,
  type AgentOptions,
} from './agent-source.ts'
import { cloudInit, envFile, faultOfBootstrap, type AgentSource, type Bootstrap } from './bootstrap.ts'
import { installScript, type ServiceFiles } from './install-script.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { durationOption, nodeName } from '#cli/kit/arguments.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { localAddressIn, refuseLocal } from '#cli/kit/local-address.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { pathExists } from '#platform/paths.ts'
import { caApi } from '#wire/ca/ca-api.ts'
import { hardwareApi } from '#wire/fleet/hardware-api.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'
import { nodeApi } from '#wire/node/node-api.ts'
import { planeNamesApi } from '#wire/settings/names-api.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import { firmwareProfiles, type FirmwareProfile } from './firmware.ts'

type BundleFormat = 'cloud-init' | 'env' | 'script'

type BundleOptions = GlobalOptions &
  AgentOptions & {
    readonly format: BundleFormat
    readonly replace?: boolean
    readonly expires?: string
    readonly profile?: string
    readonly thisMachine?: boolean
    readonly pinStatements?: boolean
    readonly out?: string
    readonly firmware?: string
  }

export const nodeBundle = async (cli: Cli, options: BundleOptions, id: string): Promise<void> => {
  // Everything is checked before a token is made: a token that is never delivered is never revoked.
  const nodeId = nodeName(id)
  const given = await givenSource(options)
  const firmware = firmwareIn(options)
  if (options.out !== undefined && readFileIfAny(options.out) !== null) throw taken(options.out)
  if (options.pinStatements === true && options.format === 'env') throw refuseToPin()
  const plane = connect(cli, options)
  const statementKeys = options.pinStatements === true ? await statementKeysOf(plane) : []
  if (firmware !== null) await checkFirmware(plane, nodeId, firmware)
  const local = options.thisMachine === true ? null : localAddressIn((await plane.ask(caApi.bundle)).join)
  if (local !== null) throw refuseLocal(local)
  const byHardware = await joinsByHardware(plane, options, nodeId)
  const agent = given === 'undecided' ? await sourceFor(plane, options, nodeId, byHardware) : given
  const invitation = byHardware
    ? await hardwareInvitation(plane, options, nodeId)
    : await tokenInvitation(plane, options, nodeId)
  const bootstrap: Bootstrap = { nodeId, join: invitation.join, agent, statementKeys }
  const fault = faultOfBootstrap(bootstrap)
  if (fault !== null) throw unusable(fault)
  const content = render(options.format, bootstrap, firmware)

  const print = printer(cli, options)
  const { token, expiresAt } = invitation
  const body = { node: nodeId, format: options.format, agent: placeOf(agent), token, expires_at: expiresAt }
  if (options.out === undefined) print.answer({ ...body, content }, () => [content.replace(/\n$/, '')])
  else {
    if (createFile(options.out, content, 0o600) === 'exists') throw taken(options.out)
    print.answer({ ...body, file: options.out }, () => [options.out ?? ''])
  }
  for (const note of invitation.notes) print.note(note)
  if (options.format !== 'env') print.note(agentNote(agent))
  if (statementKeys.length > 0)
    print.note('the machine pins the statement keys: list its services and checks in agent.toml')
  if (firmware !== null) print.note(`when it runs: muster node machine ${nodeId} --firmware ${firmware.name}`)
}

const refuseToPin = (): Failure =>
  usageFailure(
    'An env file lays nothing down: statement keys are pinned by root.',
    'Take --format script or cloud-init, or put the file into the image: muster ca bundle --statements',
  )

const statementKeysOf = async (plane: OperatorClient): Promise<readonly string[]> => {
  const { statement_keys: keys = [] } = await plane.ask(caApi.bundle)
  if (keys.length === 0) throw usageFailure('The plane does not say its statement keys.', 'It needs a plane of 0.6')
  return keys
}

/** An env file says nothing of the agent. */
const sourceFor = async (
  plane: OperatorClient,
  { agent, format }: BundleOptions,
  nodeId: string,
  byHardware: boolean,
): Promise<AgentSource | null> => {
  if (byHardware && agent === 'plane') throw refuseForHardware(nodeId)
  if (byHardware || format === 'env') return null
  const source = await sourceOfPlane(plane)
  if (source === null && agent === 'plane') throw refuseWithoutAgents()
  return source
}

const placeOf = (agent: AgentSource | null): 'image' | 'plane' | 'url' =>
  agent === null ? 'image' : agent.kind === 'plane' ? 'plane' : 'url'

const agentNote = (agent: AgentSource | null): string => {
  if (agent === null) return 'the agent has to be in the image, at /usr/bin/muster (muster domain agents)'
  if (agent.kind === 'elsewhere') return `the machine gets the agent from ${agent.from}, by its digest`
  const architectures = agent.builds.map(({ architecture }) => architecture).join(', ')
  return `the machine fetches the agent from the plane, by its digest (${architectures})`
}

/** What a machine joins with, and what a person has to know about it. */
type Invitation = {
  readonly join: string
  /** Null: it holds no secret. */
  readonly token: string | null
  readonly expiresAt: string | null
  readonly notes: readonly string[]
}

const tokenInvitation = async (plane: OperatorClient, options: BundleOptions, node: string): Promise<Invitation> => {
  const { join, token, registered } = await plane.ask(tokenApi.create, {
    body: {
      node,
      ...(options.profile === undefined ? {} : { profile: options.profile }),
      ...(options.replace === true ? { replace: true } : {}),
      ...(options.expires === undefined ? {} : { expires_ms: durationOption('--expires', options.expires) }),
    },
    about: { ID: node, PROFILE: options.profile ?? 'PROFILE' },
  })
  return {
    join,
    token: token.id,
    expiresAt: token.expires_at,
    notes: [
      ...(registered ? [`registered ${node} with profile ${token.profile}`] : []),
      `token ${token.id} for node ${node}, good once, until ${token.expires_at}`,
    ],
  }
}

const hardwareInvitation = async (plane: OperatorClient, options: BundleOptions, node: string): Promise<Invitation> => {
  if (options.replace === true || options.expires !== undefined) {
    throw usageFailure(`${node} joins by its hardware, without a token: --replace and --expires say nothing about it.`)
  }
  const { join } = await plane.ask(planeNamesApi.joinString)
  const note = `${node} joins by its hardware identity, each time it starts: this holds no secret and does not end`
  return { join, token: null, expiresAt: null, notes: [note] }
}

/** By its profile. A node that is not registered could not be recognised by its hardware. */
const joinsByHardware = async (plane: OperatorClient, options: BundleOptions, id: string): Promise<boolean> => {
  const node = await plane.tryAsk(nodeApi.show, { params: { id } })
  if (node instanceof Failure && node.code !== 'NODE_NOT_FOUND') throw node
  const isKnown = !(node instanceof Failure)
  const name = isKnown ? node.profile : (options.profile ?? (await plane.ask(settingsApi.domain)).defaultProfile)
  const about = { PROFILE: name, NAME: name }
  const { join } = await plane.ask(settingsApi.profile, { params: { name }, about })
  if (join.allOf.includes('token')) return false
  if (isKnown) return true
  throw usageFailure(
    `${id} is not registered, and its profile ${name} knows machines by their hardware.`,
    `muster node enroll ${id} --profile ${name} --mac MAC --bmc-serial SERIAL`,
  )
}

const firmwareIn = ({ firmware, format }: BundleOptions): FirmwareProfile | null => {
  if (firmware === undefined) return null
  if (format !== 'cloud-init') throw usageFailure('A firmware profile is applied by cloud-init: --format cloud-init.')
  const known = firmwareProfiles.find(({ name }) => name === firmware)
  if (known !== undefined) return known
  const names = firmwareProfiles.map(({ name, description }) => `${name} (${description})`)
  throw usageFailure(`There is no firmware profile ${firmware}.`, `Take one of: ${names.join('; ')}`)
}

/** A machine that is set up otherwise than its hardware profile asks for could never be sold. */
const checkFirmware = async (plane: OperatorClient, id: string, { name }: FirmwareProfile): Promise<void> => {
  const machine = await plane.tryAsk(hardwareApi.machine, { params: { id }, about: { ID: id } })
  // One that is not registered yet is under no hardware profile.
  if (machine instanceof Failure) {
    if (machine.code === 'NODE_NOT_FOUND') return
    throw machine
  }
  const { hardware_profiles: all } = await plane.ask(hardwareApi.profiles)
  const wanted = all.find(({ tag }) => tag === machine.hardware_profile)?.firmware ?? name
  if (wanted === name) return
  throw usageFailure(
    `${id} is under the hardware profile ${machine.hardware_profile ?? ''}, which asks for the firmware ${wanted}.`,
    `muster node bundle ${id} --format cloud-init --firmware ${wanted}, or another tag: muster node tag ${id}`,
  )
}

const render = (format: BundleFormat, bootstrap: Bootstrap, firmware: FirmwareProfile | null): string => {
  switch (format) {
    case 'env':
      return envFile(bootstrap)
    case 'script':
      return installScript(bootstrap, serviceFiles())
    case 'cloud-init':
      return cloudInit(bootstrap, serviceFiles(), firmware)
  }
}

const serviceFiles = (): ServiceFiles => ({
  unit: packagedText('systemd/muster-agent.service'),
  sysusers: packagedText('systemd/muster-agent.sysusers'),
  journald: packagedText('systemd/journald@muster-agent.conf'),
})

const taken = (file: string): Failure =>
  usageFailure(`${file} is there already, and may hold another token: choose another name, or delete it first.`)

const unusable = (fault: string): Failure =>
  new Failure({
    exit: exitCodes.fault,
    code: 'UNEXPECTED_ANSWER',
    sentence: 'What the plane answered cannot be put into a bundle.',
    detail: fault,
    next: 'Take the token back: muster token list, muster token revoke ID; compare the versions: muster version',
  })

type RepairOptions = GlobalOptions & { readonly reason: string; readonly out: string }

export const nodeRepairBundle = async (cli: Cli, options: RepairOptions, id: string): Promise<void> => {
  const node = nodeName(id)
  // Looked at first: making a bundle quarantines the node and voids the bundle before.
  if (pathExists(options.out)) throw repairTaken(options.out)
  const bundle = await connect(cli, options).ask(nodeActionApi.repairBundle, {
    params: { id: node },
    body: { reason: options.reason },
    about: { ID: node },
  })
  if (createFile(options.out, JSON.stringify(bundle, null, 1) + '\n', 0o600) === 'exists')
    throw repairTaken(options.out)

  const { id: bundleId, expires_at: expiresAt } = bundle.issued
  const print = printer(cli, options)
  print.answer({ node, file: options.out, id: bundleId, expires_at: expiresAt }, () => [options.out])
  print.note(`${node} is in quarantine; repair bundle ${bundleId} is good once, until ${expiresAt}`)
  print.note(`next: carry it to the machine, there: muster agent repair --bundle-file FILE`)
  print.note(`then, when muster node show ${node} says that its evidence has passed: muster node release ${node}`)
}

const repairTaken = (file: string): Failure => usageFailure(`${file} is there already: choose another name for --out.`)
