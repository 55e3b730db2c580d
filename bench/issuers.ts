// What an enrollment costs a plane that signs by itself, has its issuing CA in a PKCS#11 token (SoftHSM), or has a step-ca or a Vault sign.
// An outside issuer costs a second commit and a call over TLS, whatever it spends itself. The planes take turns in one run, so that whatever
// else the machine does befalls all of them. CPU is of the plane alone, user and system, all threads: that of SoftHSM is in it, that of
// step-ca and Vault is not.
//
//     npm run bench issuers
//     npm run bench issuers -- --enrollments 2000 --rounds 4

import { addStepCa, addVault, signedBy } from '../test/peers/added-issuers.ts'
import { builtPeer } from '../test/peers/built-peer.ts'
import { peer } from '../test/peers/peer.ts'
import { makeTokens as makeSoftTokens } from '../test/peers/soft-token.ts'
import { startStepCa } from '../test/peers/step-ca.ts'
import { startVault } from '../test/peers/vault-server.ts'
import type { Scope } from '../test/process/cleanup.ts'
import type { Plane } from '../test/process/start-plane.ts'
import { benchRun } from './bench-run.ts'
import { startLoadClient } from './load-client.ts'
import { makeTokens, startPlane, type PlaneProcess } from './plane-process.ts'
import { untilIdle } from './process-cost.ts'
import { benchOptions, wrongOption } from './options.ts'

const { values, positionals } = benchOptions({
  options: { enrollments: { type: 'string' }, rounds: { type: 'string' }, 'warm-up': { type: 'string' } },
  allowPositionals: true,
})
// npm takes `--enrollments N` without a `--` before it for its own, and passes on the number alone.
const enrollments = Number(values.enrollments ?? positionals[0] ?? 1000)
const rounds = Number(values.rounds ?? 4)
if (!Number.isInteger(enrollments) || enrollments < 1) wrongOption('--enrollments takes a number from 1 on')
if (!Number.isInteger(rounds) || rounds < 1) wrongOption('--rounds takes a number from 1 on')

const warmUp = Number(values['warm-up'] ?? 500)
if (!Number.isInteger(warmUp) || warmUp < 1) wrongOption('--warm-up takes a number from 1 on')

/** As many as an outside issuer is asked at once. */
const atOnce = 16
const perRound = Math.ceil(enrollments / rounds)
const profile = 'gpu-cloud'

type Measured = { readonly done: number; readonly ms: number; readonly cpuMs: number }
/** `root`: what its certificates hang under besides the root of the plane, PEM. */
type Opened = { readonly plane: PlaneProcess; readonly root: string }
type Contender = { readonly name: string; readonly plane: PlaneProcess; enroll(count: number): Promise<Measured> }

await benchRun(async (t) => {
  const contenders = [
    await contender(t, 'built-in', async () => ({ plane: await openPlane(t), root: '' })),
    ...(await inToken(t)),
    await contender(t, 'step-ca', async () => {
      const server = await startStepCa(t, await builtPeer('step-ca'))
      const plane = await openPlane(t)
      const issuer = await addStepCa(asking(plane), server, 'corp')
      await signedBy(asking(plane), issuer, profile)
      return { plane, root: issuer.root }
    }),
    await contender(t, 'Vault', async () => {
      const server = await startVault(t, await builtPeer('vault'))
      const plane = await openPlane(t)
      const issuer = await addVault(asking(plane), server, 'corp')
      await signedBy(asking(plane), issuer, profile, server)
      return { plane, root: issuer.root }
    }),
  ]
  console.log(`issuers: ${enrollments} enrollments each, ${atOnce} at a time, in ${rounds} rounds after ${warmUp}`)
  for (const one of contenders) await one.enroll(warmUp)
  for (const { plane } of contenders) await untilIdle(plane.cpuMs)
  const results = contenders.map(({ name }) => ({ name, rounds: [] as Measured[] }))
  for (let round = 0; round < rounds; round++)
    for (const [at, one] of contenders.entries()) results[at]!.rounds.push(await one.enroll(perRound))
  for (const { name, rounds: its } of results) print(name, its, results[0]!.rounds)
})

async function openPlane(t: Scope, options: readonly string[] = []): Promise<PlaneProcess> {
  const plane = await startPlane({ kind: 'sqlite' }, null, options)
  t.after(() => plane.stop())
  return plane
}

/** As tests ask a plane; a refusal is thrown. */
function asking({ call }: PlaneProcess): Pick<Plane, 'api'> {
  return { api: async (method, path, body) => ({ status: 200, headers: {}, body: await call(method, path, body) }) }
}

async function inToken(t: Scope): Promise<readonly Contender[]> {
  const [module, tool] = [peer('softhsm'), peer('softhsm2-util')]
  if ('missing' in module || 'missing' in tool) {
    console.log('without a PKCS#11 token: SoftHSM is not installed')
    return []
  }
  const tokens = makeSoftTokens(t, { module: module.path, tool: tool.path }, ['bench'])
  const open = async (): Promise<Opened> => {
    const keys = ['--root', 'pkcs11:token=bench;object=root', '--ca-key', 'pkcs11:token=bench']
    const token = ['--pkcs11-module', tokens.module, '--pkcs11-pin', tokens.pinFile]
    return { plane: await openPlane(t, [...keys, ...token]), root: '' }
  }
  return [await contender(t, 'PKCS#11', open)]
}

async function contender(t: Scope, name: string, open: () => Promise<Opened>): Promise<Contender> {
  const { plane, root } = await open()
  const client = await startLoadClient(t)
  const { host: address, hostname } = new URL(plane.nodeUrl)
  await client.ask({ do: 'connect', server: 'muster', address, name: hostname, roots: `${plane.rootPem}${root}` })
  const secrets = await makeTokens(plane, warmUp + perRound * rounds)
  await client.ask({ do: 'machines', names: secrets.map((_, at) => `storm-${at}`), secrets })
  let next = 0
  const enroll = async (count: number): Promise<Measured> => {
    const [from, to] = [next, (next += count)]
    const before = plane.cpuMs()
    const { done, ms, failures } = await client.ask({ do: 'enroll', from, to, at_once: atOnce, keep: false })
    const measured = { done, ms, cpuMs: plane.cpuMs() - before }
    if (done !== count) throw new Error(`${name}: ${count - done} of ${count} failed: ${failures?.[0]}`)
    await client.check(from, to)
    return measured
  }
  return { name, plane, enroll }
}

/** The ratio of each round to the first contender's in that round: the middle one, and how far they are apart. */
function print(name: string, its: readonly Measured[], builtIn: readonly Measured[]): void {
  const sum = (of: (one: Measured) => number): number => its.reduce((all, one) => all + of(one), 0)
  const [done, cpuMs, ms] = [sum((one) => one.done), sum((one) => one.cpuMs), sum((one) => one.ms)]
  const each = (one: Measured): number => one.cpuMs / one.done
  const ratios = its.map((one, at) => each(builtIn[at]!) / each(one)).toSorted((one, other) => one - other)
  const middle = (ratios[Math.floor((ratios.length - 1) / 2)]! + ratios[Math.floor(ratios.length / 2)]!) / 2
  console.log(
    `${name.padEnd(10)} ${((1000 * done) / cpuMs).toFixed(0)} enrollments a CPU second of the plane ` +
      `(${(cpuMs / done).toFixed(2)} ms each), ${((1000 * done) / ms).toFixed(0)} a second of wall clock; ` +
      `${middle.toFixed(2)} of built-in (${ratios[0]!.toFixed(2)} to ${ratios.at(-1)!.toFixed(2)})`,
  )
}
