// Twelve real agents go from the authority of the domain to a real step-ca and back while they renew all the time, and the step-ca is away
// in the middle: none loses its channel for good, enrolls again or is without a certificate.

import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { IssuerTest, IssuerView } from '#wire/issuers/issuer-api.ts'
import type { MigrationPlan, MigrationView } from '#wire/issuers/migration-api.ts'
import { joinCrowd } from '../process/agent-crowd.ts'
import { makeProfile, untilConnected } from '../process/agent-member.ts'
import { eventually } from '../process/eventually.ts'
import type { Json } from '../process/operator-call.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'
import { startStepCa } from './step-ca.ts'

const count = 12
/** step-ca cannot be made to believe another time. */
const lifetime = '30s'
const patience = { withinMs: 120_000, everyMs: 1000 }

test('twelve agents go to a step-ca and back with it away in the middle, and keep their epoch and their certificates', async (t) => {
  const binary = withPeer(t, 'step-ca')
  if (binary === null) return
  const server = await startStepCa(t, binary)
  const plane = await startPlane(t)
  const root = path.join(tempFolder(t), 'root.pem')
  fs.writeFileSync(root, server.files.root)
  const key = createPrivateKey(server.provisioner.key.pkcs8Pem()).export({ format: 'jwk' })
  const env = { PROVISIONER: JSON.stringify({ ...key, kid: server.provisioner.keyId }) }
  const muster = async <T>(code: number, ...words: string[]): Promise<T> => {
    const ran = await plane.musterWith({ env }, 'issuer', ...words, '-o', 'json')
    assert.equal(ran.code, code, ran.stderr + ran.stdout)
    return (code === 0 ? JSON.parse(ran.stdout) : { stderr: ran.stderr }) as T
  }
  const added = await muster<IssuerView>(
    0,
    ...['add', 'corp', '--at', server.address, '--server-ca', root, '--roots', root],
    ...['--provisioner', 'muster', '--renewal-provisioner', 'muster-renewal', '--provisioner-key', 'env:PROVISIONER'],
  )
  await server.configure((config) => {
    const [enrolls, renews] = config.authority.provisioners
    for (const one of [enrolls, renews]) if (one !== undefined) one.claims['minTLSCertDuration'] = '5s'
    if (renews !== undefined) renews['roots'] = Buffer.from(added.renewal_root ?? '').toString('base64')
  })
  await makeProfile(plane, 'brief', ['--from', 'gpu-cloud', `certificate.lifetimeMs=${lifetime}`])
  const tested = await muster<IssuerTest>(0, 'test', 'corp', '--profile', 'brief')
  assert.ok(tested.passed, JSON.stringify(tested.faults))
  const members = await joinCrowd(t, plane, { prefix: 'n', count, profile: 'brief' })
  await untilConnected(members)

  const migrate = <T = MigrationView>(...words: string[]): Promise<T> => muster<T>(0, 'migrate', 'brief', ...words)
  // By the call itself: it is asked again and again.
  const shown = async (): Promise<MigrationView> => (await plane.api('GET', '/v1/issuer-migrations/brief')).body
  const progress = async () => (await shown()).progress ?? assert.fail()
  const until = (what: string, moved: number): Promise<unknown> =>
    eventually(what, async () => (await progress()).moved === moved, patience)
  /** The serial of each one's newest certificate. */
  const serials = async (): Promise<ReadonlyMap<string, string>> => {
    const found = new Map<string, string>()
    for (const { id } of members) {
      const { body } = await plane.api('GET', `/v1/nodes/${id}`)
      assert.deepEqual([body.membership, body.epoch], ['active', 1], id)
      found.set(id, body.certificates.find(({ slot }: Json) => slot === 'current').serial)
    }
    return found
  }

  const plan = await migrate<MigrationPlan>('--to', 'corp', '--plan')
  assert.deepEqual([plan.active, plan.from], [count, 'built-in'])
  assert.match(plan.notes.join('\n'), /verifiers outside Muster cannot be counted/)
  await migrate('--to', 'corp')
  await eventually(
    'every agent to have confirmed the new root',
    async () => (await progress()).unconfirmed.length === 0,
    patience,
  )
  await migrate('--share', '100')
  await until('all of them to have moved', count)

  await server.stop()
  const before = await serials()
  await eventually(
    'all of them to have been renewed by the authority of the domain',
    async () => {
      if ((await progress()).moved > 0) return false
      return [...(await serials())].every(([id, serial]) => serial !== before.get(id))
    },
    patience,
  )
  assert.notEqual((await migrate()).new_away_since, null, 'the answer says that it is away')
  await server.start()
  await until('all of them to be back at the step-ca', count)
  assert.equal((await migrate('--finish')).stage, 'finish')
  await migrate('--back')
  await migrate('--back')
  await until('all of them to be with the authority of the domain again', 0)
  await serials()
  await untilConnected(members)
  assert.equal((await migrate('--back')).stage, 'ended')
  const { body } = await plane.api('GET', '/v1/alerts')
  assert.deepEqual(
    body.alerts.filter(({ kind }: Json) => kind !== 'issuer_unavailable'),
    [],
    JSON.stringify(body.alerts),
  )
})
