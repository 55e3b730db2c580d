import { type VClusterBody, VClusterSettings, vclusterApi } from '#wire/fleet/vcluster-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan-run.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { readText } from '#cli/kit/read-text.ts'
import { parseSettings, settingLines } from '#cli/kit/settings.ts'
import { renderFacts, renderHeadedTable } from '#cli/kit/table.ts'

export const vclusterList = async (cli: Cli, options: GlobalOptions): Promise<void> => {
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

export const vclusterShow = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const vcluster = await connect(cli, options).ask(vclusterApi.show, { params: { name }, about: { NAME: name } })
  show(cli, options, vcluster)
}

type WithOverlay = GlobalOptions & { readonly overlay?: string }

export const vclusterCreate = async (
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

export const vclusterSet = async (
  cli: Cli,
  options: WithOverlay,
  name: string,
  pairs: readonly string[],
): Promise<void> => {
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

export const vclusterDelete = withPlan(
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
