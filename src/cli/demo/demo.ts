import { startOwnChild, type OwnChild } from '#platform/own-child.ts'
import { makeTemporaryFolder, removeFolder } from '#platform/paths.ts'
import { stopSignal } from '#platform/signals.ts'
import { sleep } from '#platform/timers.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { demoFleet } from './demo-fleet.ts'
import { inviteFleet } from './demo-invite.ts'
import { demoTrouble } from './demo-trouble.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { everyNode } from '#cli/node/node-list.ts'
import { connect } from '#cli/kit/operator-client.ts'
import type { PlaneReadyBody } from '#cli/plane/plane-banner.ts'
import { printer } from '#cli/kit/print.ts'
import { shellWord } from '#cli/kit/shell-word.ts'

const stopWithinMs = 10_000
const joinWithinMs = 120_000

/** A plane and agents in two processes of their own, and a temporary folder; nothing of it stays. */
export const demo = async (cli: Cli, options: GlobalOptions & { readonly nodes: string }): Promise<void> => {
  const count = nodeCount(options.nodes)
  const stop = stopSignal()
  const folder = makeTemporaryFolder('muster-demo-')
  const children: OwnChild[] = []
  const start = (name: string, args: readonly string[], input: string): OwnChild => {
    const child = startOwnChild(args, {
      env: quietEnvironment(cli),
      input: { text: input },
      logFile: `${folder}/${name}.log`,
    })
    children.push(child)
    return child
  }
  try {
    const data = `${folder}/data`
    const plane = start('plane', planeArgs(data), '')
    const ready = JSON.parse(await plane.firstLine) as PlaneReadyBody
    const client = connect(cli, { output: 'table', data })
    const agents = await inviteFleet(client, ready, demoFleet(count), folder)
    start('agents', ['demo-agents', folder], JSON.stringify(agents))

    const countActive = async () => (await everyNode(client, {})).filter((node) => node.channel_open).length
    await waitForAll(cli, stop, children, count, countActive)
    if (!stop.aborted) {
      printer(cli, options).item({ ...ready, nodes: count }, () => lookAround(cli, ready, folder, count))
    }
    await untilStoppedOrDead(stop, children)
  } catch (error) {
    if (!stop.aborted) throw demoTrouble(error, folder)
  } finally {
    await Promise.all(children.map((child) => child.stop(stopWithinMs)))
    removeFolder(folder)
  }
  cli.err.write('the demo is over; everything was removed\n')
}

const planeArgs = (data: string): string[] => {
  const free = ['node', 'recovery', 'operator', 'status'].flatMap((door) => [`--${door}-listen`, '127.0.0.1:0'])
  return ['plane', '--data', data, ...free, '--log-level', 'warn', '-o', 'json']
}

const nodeCount = (text: string): number => {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > 2000) throw usageFailure(`--nodes ${text} is not a number from 1 to 2000.`)
  return count
}

/** Settings of the operator's own plane must not leak into this one. */
const quietEnvironment = (cli: Cli): Record<string, string> =>
  Object.fromEntries(
    Object.entries(cli.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].startsWith('MUSTER_'),
    ),
  )

const waitForAll = async (
  cli: Cli,
  stop: AbortSignal,
  children: readonly OwnChild[],
  count: number,
  countActive: () => Promise<number>,
): Promise<void> => {
  const giveUpMs = cli.clock.monotonicMs() + joinWithinMs
  for (let active = 0; active < count && !stop.aborted;) {
    await sleep(cli.timers, 250)
    if (children.some((child) => !child.running())) throw new Error('a process of the demo has ended')
    if (cli.clock.monotonicMs() > giveUpMs) throw new Error(`only ${active} of ${count} agents joined`)
    active = await countActive()
    if (cli.err.isTerminal) cli.err.write(`\r${active} of ${count} agents have joined\x1b[K`)
  }
  if (cli.err.isTerminal) cli.err.write('\r\x1b[K')
}

const untilStoppedOrDead = async (stop: AbortSignal, children: readonly OwnChild[]): Promise<void> => {
  const stopped = new Promise<'stopped'>((resolve) => {
    if (stop.aborted) resolve('stopped')
    stop.addEventListener('abort', () => resolve('stopped'))
  })
  const dead = Promise.race(children.map((child) => child.ended.then(() => 'dead' as const)))
  if ((await Promise.race([stopped, dead])) === 'dead' && !stop.aborted)
    throw new Error('a process of the demo has ended')
}

const lookAround = (cli: Cli, ready: PlaneReadyBody, folder: string, count: number): string[] => [
  `A plane with ${count} agents runs in ${folder}`,
  `  nodes      ${ready.node_url}`,
  `  operators  ${ready.operator_url}`,
  '',
  'Look around, from another terminal:',
  '',
  `    export MUSTER_DATA=${shellWord(ready.data)}`,
  `    ${cli.program} node list`,
  `    ${cli.program} node show gpu-001`,
  `    ${cli.program} journal follow`,
  `    ${cli.program} node revoke gpu-002 --reason "to see what happens"`,
  `    ${cli.program} journal verify`,
  '',
  'Ctrl-C ends the demo and removes everything.',
]
