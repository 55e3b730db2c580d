import { type SchedulingView, schedulingApi } from '#wire/fleet/scheduling-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { connect } from '#cli/kit/operator-client.ts'
import type { Colour, Paint } from '#cli/kit/paint.ts'
import { printable } from '#cli/kit/printable.ts'
import { printer } from '#cli/kit/print.ts'
import { waitForPlane } from '#cli/kit/wait-for-plane.ts'

const waitMs = 25_000

/** Ends by Ctrl-C, or when the plane refuses. A plane that restarts is waited for, and nothing is missed meanwhile. */
export const schedulingWatch = async (
  cli: Cli,
  options: GlobalOptions & { readonly vcluster?: string },
): Promise<void> => {
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
export const schedulingLine = (view: SchedulingView, paint: Paint): string =>
  [
    printable(view.node),
    paint(colours[view.state], view.state),
    view.vcluster === null ? 'no vcluster' : `vcluster ${printable(view.vcluster)}`,
    `${view.allocations} allocation${view.allocations === 1 ? '' : 's'}`,
    ...(view.sku === null ? [] : [printable(view.sku)]),
    ...(view.reasons.length === 0 ? [] : [printable(view.reasons.join(', '))]),
  ].join('  ')
