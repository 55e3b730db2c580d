// `muster vcluster`: groups of nodes, what they run and who may do what there.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { noun, performs, plans, verb } from '#cli/kit/verb.ts'
import { type VClusterBody, VClusterSettings, vclusterApi } from '#wire/fleet/vcluster-api.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { readText } from '#cli/kit/arguments.ts'
import { parseSettings, settingLines } from '#cli/kit/settings.ts'
import { renderFacts, renderHeadedTable } from '#cli/kit/table.ts'

export const declareVCluster = (vcluster: Command, cli: Cli): void => {
  noun(vcluster, [
    ['muster vcluster create training --overlay training.json', ''],
    ['muster node assign gpu-001 gpu-002 --to training', ''],
  ])
  const list = verb(vcluster, 'list', 'List vClusters', [['muster vcluster list', '']])
  performs(cli, list, vclusterList)

  const show = verb(vcluster, 'show <name>', 'Show a vCluster: its policy, its files and services', [
    ['muster vcluster show training', ''],
    ['muster vcluster show training -o json | jq .overlay > training.json', 'an overlay as vcluster set takes it'],
  ])
  performs(cli, show, vclusterShow)

  const create = verb(vcluster, 'create <name> [settings...]', 'Make a vCluster', [
    ['muster vcluster create training', 'observes, and runs nothing'],
    ['muster vcluster create secret peering=isolated', 'its nodes see only each other'],
    ['muster vcluster create training --overlay training.json', ''],
  ])
    .option('--overlay <file>', 'what its nodes run, as JSON (- for standard input)')
    .addHelpText('after', overlayHelp)
  performs(cli, create, vclusterCreate)

  const set = verb(vcluster, 'set <name> [settings...]', 'Change a vCluster; its nodes get the change at once', [
    ['muster vcluster set training policy.enforcementMode=enforce', 'drift is put right, not only reported'],
    ['muster vcluster set training policy.execWhitelist=nvidia-smi,dmesg', 'lists with commas'],
    ['muster vcluster set training --overlay training.json', 'replaces all of its files and services'],
  ])
    .option('--overlay <file>', 'what its nodes run, as JSON (- for standard input)')
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

const overlayHelp = `
An overlay:
  {
    "files": [{"path": "etc/worker.conf", "mode": 420, "content": "batch = 8\\n"}],
    "services": [{"name": "worker", "command": ["/usr/bin/worker", "--config", "{overlay}/etc/worker.conf"]}]
  }
Paths lie below a folder of the agent, for which {overlay} stands; modes are decimal (420 is 644 in octal).`

const vclusterList = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(vclusterApi.list)
  const print = printer(cli, options)
  print.answer(answer, (paint) =>
    answer.vclusters.length === 0
      ? []
      : renderHeadedTable(
          ['VCLUSTER', 'REVISION', 'POLICY', 'PEERING', 'RUNS', 'DESCRIPTION'],
          answer.vclusters.map((one) => [
            one.name,
            String(one.revision),
            one.enforcement_mode,
            one.peering,
            [`${one.files} file${one.files === 1 ? '' : 's'}`, ...one.services].join(', '),
            `${one.closed ? '(closed) ' : ''}${one.description}`,
          ]),
          paint,
        ),
  )
  if (answer.vclusters.length === 0) print.note('no vClusters; a first one: muster vcluster create training')
}

const vclusterShow = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const vcluster = await connect(cli, options).ask(vclusterApi.show, { params: { name }, about: { NAME: name } })
  show(cli, options, vcluster)
}

type WithOverlay = GlobalOptions & { readonly overlay?: string }

const vclusterCreate = async (
  cli: Cli,
  options: WithOverlay,
  name: string,
  pairs: readonly string[],
): Promise<void> => {
  const vcluster = await connect(cli, options).ask(vclusterApi.create, {
    body: { name, ...(await changes(cli, options, pairs)) },
    about: { NAME: name },
  })
  show(cli, options, vcluster)
}

const vclusterSet = async (cli: Cli, options: WithOverlay, name: string, pairs: readonly string[]): Promise<void> => {
  if (pairs.length === 0 && options.overlay === undefined) {
    throw usageFailure('Nothing is to be changed.', 'Write KEY=VALUE, or --overlay FILE.json')
  }
  const vcluster = await connect(cli, options).ask(vclusterApi.change, {
    params: { name },
    body: await changes(cli, options, pairs),

    about: { NAME: name },
  })
  show(cli, options, vcluster)
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

const longestDocument = 64 * 1024

const changes = async (cli: Cli, { overlay }: WithOverlay, pairs: readonly string[]): Promise<object> => ({
  ...(pairs.length > 0 && { set: parseSettings(VClusterSettings, pairs) }),
  ...(overlay !== undefined && { overlay: parseOverlay(overlay, await readText(cli, overlay, longestDocument)) }),
})

/** What it may contain is for the plane to say. */
const parseOverlay = (file: string, text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? printable(error.message) : 'unreadable'
    throw usageFailure(`${file} is not JSON: ${why}.`, 'See what one looks like: muster vcluster create --help')
  }
}

const show = (cli: Cli, options: GlobalOptions, vcluster: VClusterBody): void => {
  const { name, description, peering, closed, policy, overlay } = vcluster
  printer(cli, options).answer(vcluster, () =>
    renderFacts([
      ...settingLines({ name, description, peering, closed, policy }),
      [
        'files',
        orNone(
          overlay.files.map(({ path, mode, content }) => `${mode.toString(8)} ${path}, ${content.length} characters`),
        ),
      ],
      ['services', orNone(overlay.services.map(({ name: service, command }) => `${service}: ${command.join(' ')}`))],
      ['revision', String(vcluster.revision)],
      ['created', `${vcluster.created_at} by ${vcluster.created_by}`],
    ]),
  )
}

const orNone = (lines: readonly string[]): readonly string[] => (lines.length === 0 ? ['none'] : lines)
