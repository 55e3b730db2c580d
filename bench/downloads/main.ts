// A boot storm beside downloads of the agent: machines enroll while twenty others fetch it, as fast as the plane sends, and while none
// does, in turns of one run. Each download comes from an address and with a token of its own. Once with TLS on a thread of its own and once
// without.
//
//     npm run bench downloads
//     npm run bench downloads -- --nodes 4000

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { downloadLimits } from '#plane/files/downloads.ts'
import { cleanup, type Scope } from '../../test/process/cleanup.ts'
import { eventually } from '../../test/process/eventually.ts'
import { benchRun } from '../bench-run.ts'
import { noPhase, startContender, together, type Contender, type Phase } from '../storm/contender.ts'
import { startDownloads } from './downloads.ts'
import { benchOptions, wrongOption } from '../options.ts'

const { values, positionals } = benchOptions({ options: { nodes: { type: 'string' } }, allowPositionals: true })
const nodes = Number(values.nodes ?? positionals[0] ?? 2000)
if (!Number.isInteger(nodes) || nodes < 20) wrongOption('--nodes takes a number from 20 on')

const atOnce = 64
const warmUp = 300
const steps = 4
/** Not sent to the end in any phase. Mostly a hole: what is read costs as much. */
const agentBytes = 512 * 2 ** 20

await benchRun(async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-agents-'))
  cleanup(t, () => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'muster-linux-x64.gz')
  fs.writeFileSync(file, Buffer.from([0x1f, 0x8b]), { mode: 0o644 })
  fs.truncateSync(file, agentBytes)
  console.log(`storm of ${nodes} nodes beside ${downloadLimits.atOnce} downloads, and without them`)
  for (const [name, threads] of [
    ['TLS on a thread of its own', '1'],
    ['TLS on the main thread', '0'],
  ] as const)
    await compare(t, name, ['--agents', folder, '--tls-threads', threads])
})

async function compare(t: Scope, name: string, options: readonly string[]): Promise<void> {
  const entrant = { name, database: null, replicas: 1, options }
  const contender = await startContender(t, entrant, warmUp + 2 * nodes)
  const { plane } = contender
  const url = await eventually(
    'the plane to have read the agent',
    async () => urlOf(await plane.call('GET', '/v1/agents')),
    {
      withinMs: 120_000,
    },
  )
  let from = 0
  const enroll = async (count: number): Promise<Phase> => {
    const to = from + count
    const phase = await contender.run({ do: 'enroll', from, to, at_once: atOnce, keep: false })
    from = to
    return phase
  }
  await enroll(warmUp)
  let [alone, beside] = [noPhase, noPhase]
  let [sent, ms] = [0, 0]
  for (let step = 0; step < steps; step++) {
    alone = together(alone, await enroll(Math.floor(nodes / steps)))
    const downloads = await startDownloads(t, contender, url, downloadLimits.atOnce)
    const before = downloads.received()
    const phase = await enroll(Math.floor(nodes / steps))
    sent += downloads.received() - before
    ms += phase.ms
    beside = together(beside, phase)
    await downloads.stop()
  }
  print(contender, alone, beside, sent / 2 ** 20 / (ms / 1000))
}

type Listed = { readonly agents: readonly { readonly url: string }[] }

function urlOf(listed: Record<string, unknown>): string | null {
  return (listed as unknown as Listed).agents[0]?.url ?? null
}

function print({ name }: Contender, alone: Phase, beside: Phase, mebibytes: number): void {
  const cpu = ({ cpuMs, done }: Phase): number => cpuMs.plane / done
  const perSecond = ({ done, ms }: Phase): number => (done / ms) * 1000
  console.log(`\n${name}`)
  for (const [label, phase] of [
    ['without', alone],
    ['beside', beside],
  ] as const)
    console.log(
      `${label.padEnd(16)} ${cpu(phase).toFixed(3)} ms of plane CPU a node, ${perSecond(phase).toFixed(0)} a second`,
    )
  console.log(`${'sent'.padEnd(16)} ${mebibytes.toFixed(1)} MiB a second to ${downloadLimits.atOnce} machines`)
  console.log(`${'ratio'.padEnd(16)} ${(cpu(beside) / cpu(alone)).toFixed(2)} of plane CPU a node (aim: at most 1.10)`)
  console.log(
    `${'ratio'.padEnd(16)} ${(perSecond(beside) / perSecond(alone)).toFixed(2)} of the nodes a second; the readers need the same processors`,
  )
  const failures = [...alone.failures, ...beside.failures]
  if (failures.length > 0) {
    console.log('failures', failures.slice(0, 5))
    process.exitCode = 1
  }
}
