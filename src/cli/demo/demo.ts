// `muster demo`: a plane and agents in two processes of their own, in a temporary folder that is removed at the end.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { documented, loads, performs } from '#cli/kit/verb.ts'
import { startOwnChild, type OwnChild } from '#platform/own-child.ts'
import { makeTemporaryFolder, removeFolder } from '#platform/paths.ts'
import { stopSignal } from '#platform/signals.ts'
import { sleep } from '#platform/timers.ts'
import { usageFailure, Failure } from '#cli/kit/failure.ts'
import { everyNode } from '#cli/node/node-list.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import type { PlaneReadyBody } from '#cli/plane/plane-banner.ts'
import { printer } from '#cli/kit/print.ts'
import { shellWord } from '#cli/kit/printable.ts'
import { makeFolder, replaceFile, readFileIfAny } from '#platform/files.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { tokenApi } from '#wire/enrollment/token-api.ts'
import { nodeApi } from '#wire/node/node-api.ts'
import type { DemoAgent } from './demo-agents.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'

export const declareDemo = (demo: Command, cli: Cli): void => {
  documented(demo, [
    ['muster demo', '25 agents'],
    ['muster demo --nodes 200', ''],
  ]).option('--nodes <count>', 'how many agents', '25')
  performs(cli, demo, runDemo)
}

/** The other process of the demo. */
export const declareDemoAgents = (agents: Command, cli: Cli): void => {
  agents.argument('<folder>')
  loads(cli, agents, async () => (await import('./demo-agents.ts')).demoAgents)
}

const stopWithinMs = 10_000
const joinWithinMs = 120_000

/** A plane and agents in two processes of their own, and a temporary folder; nothing of it stays. */
const runDemo = async (cli: Cli, options: GlobalOptions & { readonly nodes: string }): Promise<void> => {
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
  return ['plane', '--config', 'off', '--data', data, ...free, '--log-level', 'warn', '-o', 'json']
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

/** What each node joins with: a token of its own, a token of the domain, or a registration of its hardware. */
const inviteFleet = (
  plane: OperatorClient,
  ready: PlaneReadyBody,
  fleet: readonly DemoNode[],
  folder: string,
): Promise<DemoAgent[]> => {
  const hardwareFolder = `${folder}/hardware`
  makeFolder(hardwareFolder, 0o700)
  return inParallel(fleet, 8, async (node) => {
    const hardwareFile = `${hardwareFolder}/${node.id}.json`
    replaceFile(hardwareFile, JSON.stringify({ macs: [node.mac], bmc_serial: node.bmcSerial }), 0o600)
    return {
      id: node.id,
      join: await joinOf(plane, ready, node),
      keyStorage: node.profile === 'hpc-diskless' ? 'memory' : 'file',
      hardwareFile,
      asksForName: node.profile === 'mesh-paas',
    }
  })
}

const joinOf = async (plane: OperatorClient, ready: PlaneReadyBody, node: DemoNode): Promise<string> => {
  switch (node.profile) {
    case 'gpu-cloud':
      return (await plane.ask(tokenApi.create, { body: { node: node.id, profile: node.profile } })).join
    case 'mesh-paas':
      return (await plane.ask(tokenApi.create, { body: { profile: node.profile } })).join
    case 'hpc-diskless': {
      const body = { id: node.id, profile: node.profile, macs: [node.mac], bmc_serial: node.bmcSerial }
      await plane.ask(nodeApi.register, { body })
      const { node_url: url, domain, root_fingerprint: rootFingerprint } = ready
      return formatJoinString({ url, domain, rootFingerprint, secret: null, marked: true })
    }
  }
}

type DemoNode = {
  readonly id: string
  readonly profile: 'gpu-cloud' | 'hpc-diskless' | 'mesh-paas'
  readonly mac: string
  readonly bmcSerial: string
}

/** Of ten nodes seven are GPU hosts, two are diskless and one belongs to the mesh. */
export const demoFleet = (count: number): DemoNode[] =>
  Array.from({ length: count }, (_, at) => {
    const kind = kinds[at % kinds.length] ?? kinds[0]
    const number = String(at + 1).padStart(3, '0')
    return { id: `${kind.prefix}-${number}`, profile: kind.profile, mac: macOf(at + 1), bmcSerial: `DEMO${number}` }
  })

const gpu = { prefix: 'gpu', profile: 'gpu-cloud' } as const
const hpc = { prefix: 'hpc', profile: 'hpc-diskless' } as const
const mesh = { prefix: 'mesh', profile: 'mesh-paas' } as const
const kinds = [gpu, gpu, gpu, hpc, gpu, gpu, mesh, gpu, hpc, gpu] as const

/** Locally administered, so no real card has it. */
const macOf = (number: number): string =>
  `02:4d:55:${[16, 8, 0].map((shift) => ((number >> shift) & 0xff).toString(16).padStart(2, '0')).join(':')}`

// The folder of the demo is removed, so what its processes said last goes into the message.

const keptLines = 3

const demoTrouble = (error: unknown, folder: string): Failure =>
  error instanceof Failure
    ? error
    : new Failure({
        exit: exitCodes.fault,
        code: 'DEMO_FAILED',
        sentence: 'The demo ended unexpectedly.',
        detail: [error instanceof Error ? error.message : String(error), ...lastWords(folder)].join('; '),
        next: 'Try fewer agents: muster demo --nodes 5',
      })

const lastWords = (folder: string): string[] =>
  ['plane', 'agents'].flatMap((name) => {
    const lines = (readFileIfAny(`${folder}/${name}.log`) ?? '')
      .trim()
      .split('\n')
      .filter((line) => line !== '')
    return lines.length === 0 ? [] : [`${name} said last: ${lines.slice(-keptLines).join(' | ')}`]
  })
