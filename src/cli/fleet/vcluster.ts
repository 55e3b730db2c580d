// `muster vcluster`: groups of nodes, what they run and who may do what there.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, plans, verb } from '#cli/kit/verb.ts'
import {
  type ChangeVClusterRequest,
  type VClusterBody,
  type VClusterLine,
  VClusterSettings,
  vclusterApi,
} from '#wire/fleet/vcluster-api.ts'
import { formatDuration } from '#wire/core/duration.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan.ts'
import { printer } from '#cli/kit/print.ts'
import { noEffectNote, parseSettings, settingLines, thatAreSet } from '#cli/kit/settings.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { counted } from '#domain/core/in-words.ts'

export const declareVCluster = (vcluster: Command, cli: Cli): void => {
  noun(vcluster, [
    ['muster vcluster apply training/', 'training/vcluster.yaml, and the files below training/files/'],
    ['muster node assign gpu-001 gpu-002 --to training', ''],
  ])
  const list = verb(vcluster, 'list', 'List vClusters', [
    ['muster vcluster list', ''],
    ['muster vcluster list --sort nodes:desc', 'the largest first'],
  ])
  performs(cli, lists(list, columns), vclusterList)

  const show = verb(vcluster, 'show <name>', 'Show a vCluster: its policy, its files and services', [
    ['muster vcluster show training', ''],
    ['muster vcluster show training -o json | jq .overlay > training.json', 'an overlay as vcluster set takes it'],
  ])
  performs(cli, show, vclusterShow)

  const create = verb(vcluster, 'create <name> [settings...]', 'Create a vCluster', [
    ['muster vcluster create training', 'observes, and runs nothing'],
    ['muster vcluster create secret peering=isolated', 'its nodes see only each other'],
    ['muster vcluster create training --overlay training.yaml', ''],
  ])
    .option('--overlay <file>', 'what its nodes run, as YAML or JSON (- for standard input)')
    .addHelpText('after', overlayHelp)
  performs(cli, create, vclusterCreate)

  const apply = verb(vcluster, 'apply <place>', 'Create a vCluster from a document, or change it to match', [
    ['muster vcluster apply training/', 'training/vcluster.yaml, and the files below training/files/'],
    ['muster vcluster apply training.yaml', 'a document with a name in it'],
  ]).addHelpText('after', applyHelp)
  performs(cli, apply, vclusterApply)

  const set = verb(vcluster, 'set <name> [settings...]', 'Change a vCluster; its nodes get the change at once', [
    ['muster vcluster set training policy.enforcementMode=enforce', 'drift is put right, not only reported'],
    ['muster vcluster set training --overlay training.yaml', 'replaces all of its files, services and checks'],
  ])
    .option('--overlay <file>', 'what its nodes run, as YAML or JSON (- for standard input)')
    .addHelpText('after', overlayHelp)
  performs(cli, set, vclusterSet)

  const remove = verb(vcluster, 'delete [name]', 'Delete a vCluster', [
    ['muster vcluster delete training', 'refused while nodes are in it'],
    ['muster vcluster delete training --plan', 'what would become of its nodes'],
    ['muster vcluster delete training --force', 'its nodes go to maintenance mode, their work is released'],
  ]).option('--force', 'also with nodes in it')
  plans(remove)
  performs(cli, remove, vclusterDelete)
}

const documentKeys = `
  files:
    - {path: etc/worker.conf, mode: 0644, content: "node = {id}\\n", template: true}
  services:
    - name: worker
      command: [/usr/bin/worker, --config, "{overlay}/etc/worker.conf"]
      user: worker                 # needs muster-agent-helper or systemd; never root
      environment: {BATCH: "8"}
      workingDirectory: /var/lib/worker
      restart: on-failure          # always (default), on-failure, never
      limits: {memoryBytes: 2GiB, cpus: 1.5, openFiles: 4096}
  checks:
    - {name: disks, command: ["muster:read-only"], intervalMs: 60s, timeoutMs: 10s}
    - {name: gpus, command: ["muster:gpus", "8"]}
Paths lie below a folder of the agent, for which {overlay} stands. With template: true, {id}, {domain}, {vcluster} and {tags}
of the node are filled in. A check passes with exit code 0; its first line is shown. In JSON modes are numbers or text: "0644".`

const overlayHelp = `
An overlay (every key but path, content, name and command may be left out):${documentKeys}`

const applyHelp = `
A document (the name may be left out in a folder, which then has it):
  name: training
  description: the big one
  peering: mesh
  policy: {enforcementMode: enforce}
  outputs:
    - {name: web, usage: server, dns: ["{name}"], addresses: true, files: {keyMode: 0640, reload: nginx}}${documentKeys}
In a folder the files below files/ belong to it, with the mode 0755 or 0644; list one under files: to give it another mode or
to make it a template. Applying it again changes nothing.`

const vclusterList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(vclusterApi.list)
  showList(cli, options, { items: answer.vclusters, columns, body: (vclusters) => ({ ...answer, vclusters }) })
  if (answer.vclusters.length === 0)
    printer(cli, options).note('no vClusters; a first one: muster vcluster create training')
}

const columns: readonly Column<VClusterLine>[] = [
  { name: 'vcluster', cell: ({ name }) => name },
  {
    name: 'nodes',
    cell: ({ nodes }) => (nodes === undefined ? '' : String(nodes)),
    value: ({ nodes }) => nodes ?? null,
  },
  { name: 'revision', cell: ({ revision }) => String(revision), value: ({ revision }) => revision },
  { name: 'policy', cell: ({ enforcement_mode: mode }) => mode },
  { name: 'peering', cell: ({ peering }) => peering },
  { name: 'runs', cell: ({ files, services }) => [counted(files, 'file'), ...services].join(', ') },
  {
    name: 'description',
    cell: ({ closed, description }) => `${closed ? '(closed) ' : ''}${description}`,
    value: ({ description }) => description,
  },
  { name: 'created', cell: ({ created_at: at }) => at, wide: true },
  { name: 'created-by', cell: ({ created_by: by }) => by, wide: true },
]

const vclusterShow = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const vcluster = await connect(cli, options).ask(vclusterApi.show, { params: { name }, about: { NAME: name } })
  show(cli, options, vcluster, vcluster.no_effect_yet)
}

type WithOverlay = GlobalOptions & { readonly overlay?: string }

const vclusterCreate = async (
  cli: Cli,
  options: WithOverlay,
  name: string,
  pairs: readonly string[],
): Promise<void> => {
  const { body, withLine } = await changes(cli, options, pairs)
  const made = await connect(cli, options).tryAsk(vclusterApi.create, {
    body: { name, ...body },
    about: { NAME: name },
  })
  if (made instanceof Failure) throw withLine(made)
  showChanged(cli, options, made)
}

const vclusterSet = async (cli: Cli, options: WithOverlay, name: string, pairs: readonly string[]): Promise<void> => {
  if (pairs.length === 0 && options.overlay === undefined) {
    throw usageFailure('Nothing is to be changed.', 'Write KEY=VALUE, or --overlay FILE.yaml')
  }
  const { body, withLine } = await changes(cli, options, pairs)
  const changed = await connect(cli, options).tryAsk(vclusterApi.change, {
    params: { name },
    body,
    about: { NAME: name },
  })
  if (changed instanceof Failure) throw withLine(changed)
  showChanged(cli, options, changed)
}

const vclusterApply = async (cli: Cli, options: GlobalOptions, place: string): Promise<void> => {
  const { readVClusterFile } = await import('./overlay-file.ts')
  const { name, set, overlay, withLine } = await readVClusterFile(cli, place)
  if (name === null) throw usageFailure(`${place} names no vCluster.`, 'Write a line such as: name: training')
  const plane = connect(cli, options)
  const about = { NAME: name }
  const changed = await plane.tryAsk(vclusterApi.change, { params: { name }, body: { set, overlay }, about })
  const isMissing = changed instanceof Failure && changed.code === 'VCLUSTER_NOT_FOUND'
  const done = isMissing ? await plane.tryAsk(vclusterApi.create, { body: { name, set, overlay }, about }) : changed
  if (done instanceof Failure) throw withLine(done)
  showChanged(cli, options, done)
}

type DeleteOptions = PlanOptions & { readonly force?: boolean }

const vclusterDelete = withPlan(
  'delete-vcluster',
  (_options: DeleteOptions, name: string | undefined) => ({
    kind: 'delete-vcluster' as const,
    vcluster: named(name),
  }),
  async (cli: Cli, options: DeleteOptions, given: string | undefined) => remove(cli, options, named(given)),
)

const named = (name: string | undefined): string => {
  if (name === undefined) throw usageFailure('Which vCluster?', 'muster vcluster delete NAME, or --apply PLAN')
  return name
}

const remove = async (cli: Cli, options: DeleteOptions, name: string): Promise<void> => {
  const deleted = await connect(cli, options).ask(vclusterApi.delete, {
    params: { name },
    body: options.force === true ? { force: true } : {},

    about: { NAME: name },
    // Every node is a transaction of its own.
    timeoutMs: 600_000,
  })
  printer(cli, options).answer(deleted, () =>
    renderFacts([
      ['vcluster', `${deleted.name} deleted`],
      ['unassigned', deleted.unassigned.length === 0 ? 'no nodes' : deleted.unassigned],
    ]),
  )
}

type Changes = { readonly body: ChangeVClusterRequest; withLine(failure: Failure): Failure }

const changes = async (cli: Cli, { overlay }: WithOverlay, pairs: readonly string[]): Promise<Changes> => {
  const set = pairs.length > 0 ? { set: parseSettings(VClusterSettings, pairs) } : {}
  if (overlay === undefined) return { body: set, withLine: (failure) => failure }
  const { readOverlayFile } = await import('./overlay-file.ts')
  const read = await readOverlayFile(cli, overlay)
  return { body: { ...set, overlay: read.overlay }, withLine: read.withLine }
}

const showChanged = (cli: Cli, options: GlobalOptions, vcluster: VClusterBody): void =>
  show(cli, options, vcluster, thatAreSet(vcluster.no_effect_yet, vcluster))

/** `marked`: the settings to remark on, as having no effect yet. */
const show = (
  cli: Cli,
  options: GlobalOptions,
  vcluster: VClusterBody,
  marked: readonly string[] | undefined,
): void => {
  const { name, description, peering, closed, policy, tasks, outputs, overlay } = vcluster
  const print = printer(cli, options)
  print.answer(vcluster, () =>
    renderFacts([
      // A plane of 0.5 has no tasks.
      ...settingLines({ name, description, peering, closed, policy, ...(tasks !== undefined && { tasks }) }),
      // Planes of 0.3 have none.
      ...(outputs === undefined ? [] : [['outputs', orNone(outputs.map(outputLine))] as const]),
      ['files', orNone(overlay.files.map(fileLine))],
      ['services', orNone(overlay.services.map(serviceLine))],
      ['checks', orNone((overlay.checks ?? []).map(checkLine))],
      ['revision', String(vcluster.revision)],
      ['created', `${vcluster.created_at} by ${vcluster.created_by}`],
    ]),
  )
  const note = noEffectNote(marked)
  if (note !== null) print.note(note)
}

const outputLine = (output: NonNullable<VClusterBody['outputs']>[number]): string => {
  const { name, usage, keyType, lifetimeMs, dns, addresses, issuer, files } = output
  const { directory, owner, group, keyMode, combined, pkcs12, reload } = files
  const terms = [
    `${keyType} for ${formatDuration(lifetimeMs)}`,
    ...(dns.length === 0 ? [] : [`names ${dns.join(' ')}`]),
    ...(addresses ? ['addresses'] : []),
    ...(issuer === undefined ? [] : [`signed by ${issuer}`]),
    ...(directory === null ? [] : [`in ${directory}`]),
    ...(owner === null && group === null ? [] : [`of ${owner ?? ''}${group === null ? '' : `:${group}`}`]),
    `key 0${keyMode.toString(8)}`,
    ...(combined ? ['combined.pem'] : []),
    ...(pkcs12 ? ['bundle.p12'] : []),
    ...(reload === null ? [] : [`reload ${reload}`]),
  ]
  return `${name}: ${usage} (${terms.join(', ')})`
}

type OverlayShown = VClusterBody['overlay']

const fileLine = ({ path, mode, content, template = false }: OverlayShown['files'][number]): string =>
  `0${mode.toString(8)} ${path}, ${content.length} characters${template ? ', a template' : ''}`

const serviceLine = (service: OverlayShown['services'][number]): string => {
  const { name, command, user, environment = {}, workingDirectory, restart, limits = {}, template = false } = service
  const { memoryBytes, cpus, openFiles } = limits
  const terms = [
    ...(user === undefined ? [] : [`as ${user}`]),
    ...(workingDirectory === undefined ? [] : [`in ${workingDirectory}`]),
    // A value may be a secret.
    ...(Object.keys(environment).length === 0 ? [] : [`with ${Object.keys(environment).join(', ')}`]),
    ...(restart === undefined ? [] : [`restart ${restart}`]),
    ...(memoryBytes === undefined ? [] : [`memory ${memoryBytes} bytes`]),
    ...(cpus === undefined ? [] : [`${cpus} cpus`]),
    ...(openFiles === undefined ? [] : [`${openFiles} open files`]),
    ...(template ? ['a template'] : []),
  ]
  return `${name}: ${command.join(' ')}${terms.length === 0 ? '' : ` (${terms.join(', ')})`}`
}

const checkLine = ({ name, command, intervalMs, timeoutMs }: NonNullable<OverlayShown['checks']>[number]): string =>
  `${name}: ${command.join(' ')}, every ${formatDuration(intervalMs)} within ${formatDuration(timeoutMs)}`

const orNone = (lines: readonly string[]): readonly string[] => (lines.length === 0 ? ['none'] : lines)
