// `muster rollout`: one task for many nodes, a few at a time. It is begun by `muster task create` with a selector.

import type { Command } from 'commander'
import { durationOption } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { showList, type ListOptions } from '#cli/kit/list.ts'
import { connect, everyPage } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { rolloutApi } from '#wire/tasks/rollout-api.ts'
import { awaitRollout, rolloutColumns, showRollout } from './rollout-lines.ts'

const anId = '01JCQ7Z6W3M8X9Y0Z1A2B3C4D5'

export const declareRollout = (rollout: Command, cli: Cli): void => {
  noun(rollout, [
    ['muster task create --vcluster training --type service --param name=dcgm --param action=restart', 'plans one'],
    ['muster rollout list', ''],
    [`muster rollout show ${anId}`, ''],
  ])
  const list = verb(rollout, 'list', 'List rollouts, oldest first', [['muster rollout list', '']])
  performs(cli, lists(list, rolloutColumns(0)), rolloutList)

  const show = verb(rollout, 'show <id>', 'Show how far a rollout is', [[`muster rollout show ${anId}`, '']])
  performs(cli, show, async (used: Cli, options: GlobalOptions, id: string) =>
    showRollout(
      used,
      printer(used, options),
      await connect(used, options).ask(rolloutApi.show, { params: { id }, about: { ID: id } }),
    ),
  )

  const wait = verb(rollout, 'wait <id>', 'Wait until a rollout is over or held', [
    [`muster rollout wait ${anId}`, ''],
    [`muster rollout wait ${anId} --within 1h`, 'and no longer'],
  ]).option('--within <duration>', 'how long to wait at most')
  performs(cli, wait, (used: Cli, options: GlobalOptions & { readonly within?: string }, id: string) => {
    const withinMs = options.within === undefined ? null : durationOption('--within', options.within)
    return awaitRollout(used, options, connect(used, options), { id, withinMs })
  })

  const resume = verb(rollout, 'resume <id>', 'Let a held rollout go on, and count its failures from there', [
    [`muster rollout resume ${anId}`, ''],
  ])
  performs(cli, resume, async (used: Cli, options: GlobalOptions, id: string) =>
    showRollout(
      used,
      printer(used, options),
      await connect(used, options).ask(rolloutApi.resume, { params: { id }, about: { ID: id } }),
    ),
  )

  const cancel = verb(rollout, 'cancel <id>', 'Cancel a rollout, and its tasks that no node has been sent yet', [
    [`muster rollout cancel ${anId} --reason "wrong version"`, ''],
  ]).option('--reason <text>', 'why; goes into the journal')
  performs(cli, cancel, rolloutCancel)
}

const rolloutList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const plane = connect(cli, options)
  const rollouts = await everyPage(
    (after) => plane.ask(rolloutApi.list, { query: { after } }),
    (page) => page.rollouts,
  )
  const columns = rolloutColumns(cli.clock.nowMs())
  showList(cli, options, { items: rollouts, columns, body: (shown) => ({ rollouts: shown }) })
  if (rollouts.length === 0) printer(cli, options).note('no rollouts; one is removed 7 days after its end')
}

const rolloutCancel = async (
  cli: Cli,
  options: GlobalOptions & { readonly reason?: string },
  id: string,
): Promise<void> => {
  const { reason } = options
  const rollout = await connect(cli, options).ask(rolloutApi.cancel, {
    params: { id },
    body: reason === undefined ? {} : { reason },
    about: { ID: id },
  })
  showRollout(cli, printer(cli, options), rollout)
}
