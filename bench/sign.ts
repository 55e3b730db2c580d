// What the path of one enrollment costs inside the plane, against the two signatures it cannot do without: verify the
// request, decide, sign, and a durable, journaled commit, against verify + sign alone. Same process, same run, same keys.
//
//     npm run bench sign -- --nodes 4000

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { parseArgs } from 'node:util'
import { noHardware } from '#domain/core/node.ts'
import { makeCsr, parseCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { silentLog } from '#platform/log.ts'
import { planeConfig } from '#plane/config/config.ts'
import { openFeed } from '#plane/core/feed.ts'
import { openAdmissionQueue } from '#plane/limits/admission-queue.ts'
import { createToken } from '#plane/enrollment/token-routes.ts'
import { enrollNode } from '#plane/enrollment/enroll-node.ts'
import { openCopiedImages } from '#plane/identity/copied-images.ts'
import { openSecondHolders } from '#plane/identity/second-holder.ts'
import { noHolders } from '../test/fakes/no-holders.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { openCallerBudget } from '#plane/limits/caller-budget.ts'
import { layFoundation } from '#plane/foundation/foundation.ts'
import { openAuthority } from '#plane/authority/built-in-authority.ts'
import { openRecoveryAuthority } from '#plane/authority/recovery-authority.ts'

// npm takes `--nodes N` without a `--` before it for its own, and passes on the number alone.
const { values, positionals } = parseArgs({ options: { nodes: { type: 'string' } }, allowPositionals: true })
const nodes = Number(values.nodes ?? positionals[0] ?? 4000)
if (!Number.isInteger(nodes) || nodes < 100) throw new Error('--nodes takes a number from 100 on')
const rounds = 5
const atOnce = 128

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-sign-'))
const foundation = await layFoundation(planeConfig({ data: folder }, {}), silentLog)
const { store, clock, random, log, custody } = foundation
const feed = openFeed()
const core = { store, feed, clock, random, log }
const certificates = {
  domain: 'muster.local',
  serverNames: { dns: ['localhost'], ip: [] },
  serverLifetimeMs: 90 * 86_400_000,
}
const recovery = await openRecoveryAuthority(core, { custody, options: certificates })
const authority = await openAuthority(core, {
  custody,
  recovery,
  options: { ...certificates, issuerKey: 'file', intermediateLifetimeMs: 5 * 365 * 86_400_000 },
})
const deps = {
  store,
  feed,
  clock,
  random,
  issuer: authority,
  recovery,
  domainName: 'muster.local',
  nodeUrl: () => 'https://localhost:1',
  anonymousBudget: openCallerBudget(clock, () => ({ perMinute: 100, perMinutePerSource: 100 })),
  admission: openAdmissionQueue(clock, 100_000),
  writeLimit: openWriteLimit(clock, () => 1),
  secondHolders: openSecondHolders({ store, feed, clock }, noHolders),
  copiedImages: openCopiedImages({ store, feed, clock, random }),
  probe: async () => ({ silentMs: 60_000 }),
}

const by = { actor: 'operator:bench', source: null, correlation: null }
const signer = generateKey('p256')
const tbs = Buffer.alloc(420, 7)

type Machine = { readonly secret: string; readonly csr: string }

const prepare = async (from: number, count: number): Promise<Machine[]> => {
  const machines: Machine[] = []
  await inParallel(count, async (at) => {
    const asked = { node: `sign-${from + at}`, profile: null, replace: false, ttlMs: null }
    const made = await createToken(deps, deps, asked, by)
    if (made.kind === 'refused') throw new Error(made.code)
    machines.push({ secret: made.secret, csr: makeCsr(generateKey('p256'), 'bench') })
  })
  return machines
}

const inParallel = async (count: number, run: (at: number) => Promise<void>): Promise<void> => {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await run(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

const cpuPerNode = async (count: number, run: () => Promise<void>): Promise<number> => {
  const before = process.cpuUsage()
  await run()
  const used = process.cpuUsage(before)
  return (used.user + used.system) / count
}

const enrollAll = (machines: readonly Machine[]) =>
  inParallel(machines.length, async (at) => {
    const { secret, csr } = machines[at]!
    const call = {
      method: 'token',
      secret,
      csr,
      askedId: null,
      hardware: noHardware,
      facts: null,
      evidence: null,
      recovery: null,
      wireguard: null,
    } as const
    const outcome = await enrollNode(deps, deps, { ...call, source: '127.0.0.1', correlation: `bench-${at}` })
    if (outcome.kind === 'refused') throw new Error(`${outcome.code} ${outcome.detail ?? ''}`)
  })

const verifyAndSignAll = async (machines: readonly Machine[]): Promise<void> => {
  for (const { csr } of machines) {
    if (parseCsr(csr).kind === 'malformed') throw new Error('a request of ours was refused')
    signer.sign(tbs)
  }
}

try {
  const each = Math.floor(nodes / rounds)
  const ratios: number[] = []
  await enrollAll(await prepare(0, 300))
  for (let round = 1; round <= rounds; round++) {
    const machines = await prepare(round * 1_000_000, each)
    const bare = await cpuPerNode(each, () => verifyAndSignAll(machines))
    const whole = await cpuPerNode(each, () => enrollAll(machines))
    ratios.push(whole / bare)
    console.log(
      `round ${round}: whole path ${whole.toFixed(0)} µs, verify + sign ${bare.toFixed(0)} µs of CPU, ratio ${(whole / bare).toFixed(2)}`,
    )
  }
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(rounds / 2)]!
  console.log(`ratio ${median.toFixed(2)} in the median of ${rounds} rounds of ${each} (aim: at most 2.5)`)
} finally {
  await store.close()
  fs.rmSync(folder, { recursive: true, force: true })
}
