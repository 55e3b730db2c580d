// `muster scheduling`: where work may be placed, as it changes.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'
import { type SchedulingView, schedulingApi } from '#wire/fleet/scheduling-api.ts'
import { connect, waitForPlane } from '#cli/kit/operator-client.ts'
import { type Colour, type Paint, printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'

export const declareScheduling = (scheduling: Command, cli: Cli): void => {
  noun(scheduling, [['muster scheduling watch --vcluster training', '']])

  const watch = verb(
    scheduling,
    'watch',
    'Print all nodes, then each whose scheduling may have changed, as it happens',
    [
      ['muster scheduling watch', 'ends by Ctrl-C'],
      ['muster scheduling watch --vcluster training -o json', 'one object a line, for programs'],
    ],
  ).option('--vcluster <name>', 'only nodes of this vCluster, and those that leave it')
  performs(cli, watch, schedulingWatch)
}

const waitMs = 25_000

/** Ends by Ctrl-C, or when the plane refuses. A plane that restarts is waited for, and nothing is missed meanwhile. */
const schedulingWatch = async (cli: Cli, options: GlobalOptions & { readonly vcluster?: string }): Promise<void> => {
  const plane = connect(cli, options)
  const print = printer(cli, options)
  const { vcluster } = options
  for (let after: string | undefined; ;) {
    const place = after === undefined ? {} : { after, wait_ms: waitMs }
    const page = await waitForPlane(cli, print.note, () =>
      plane.ask(schedulingApi.watch, { query: { vcluster, limit: 500, ...place }, timeoutMs: 30_000 + waitMs }),
    )
    for (const node of page.nodes) print.item(node, (paint) => [schedulingLine(node, paint)])
    await cli.out.drained()
    after = page.next
  }
}

const colours: Readonly<Record<SchedulingView['state'], Colour>> = {
  schedulable: 'green',
  draining: 'yellow',
  drained: 'yellow',
  unavailable: 'red',
}

/** `gpu-001  schedulable  vcluster training  2 allocations`, and why not. */
const schedulingLine = (view: SchedulingView, paint: Paint): string =>
  [
    printable(view.node),
    paint(colours[view.state], view.state),
    view.vcluster === null ? 'no vcluster' : `vcluster ${printable(view.vcluster)}`,
    `${view.allocations} allocation${view.allocations === 1 ? '' : 's'}`,
    ...(view.sku === null ? [] : [printable(view.sku)]),
    ...(view.reasons.length === 0 ? [] : [printable(view.reasons.join(', '))]),
  ].join('  ')
