// The whole life of a node with the real agent and a plane as a process, under each kind of issuer: a step-ca, a Vault, and an authority whose
// keys are in a token or in Vault's Transit; and an issuer that is away for a while. OpenSSL verifies each certificate that the agent holds; no secret is anywhere but where it was put.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { act, journalOf, succeeded } from '../compliance/ask-plane.ts'
import { formsOfText } from '../faults/secret-forms.ts'
import { scanFor } from '../faults/secret-scan.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { fairStopwatch } from '../process/fair-time.ts'
import { startAgent, type Agent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { databaseOf, onPostgres } from '../process/store-under-test.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { connected, identityOf, stoppedUntilExpired } from '../system/agent-recovery-setup.ts'
import { addStepCa, addVault, changeProfile, signProfile, type AddedIssuer } from './added-issuers.ts'
import { withPeer } from './peer.ts'
import { runOpenssl } from './run-openssl.ts'
import { isPeersRun } from './run-of-peers.ts'
import { softTokens } from './soft-token.ts'
import { startStepCa } from './step-ca.ts'
import { startVault } from './vault-server.ts'
import { transitHost } from './vault-set-up.ts'

const profile = 'lived'
const usual = { 'certificate.lifetimeMs': 600_000, 'recovery.limit': 10 }

/** As a verifier outside Muster does it, which knows the root and nothing else. */
const verified = (t: TestContext, agent: Agent, root: string): string => {
  const { chainPem, serial } = identityOf(agent).current
  const folder = tempFolder(t)
  const [leaf = '', ...above] = chainPem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n?/g) ?? []
  const file = (name: string, text: string): string => {
    fs.writeFileSync(path.join(folder, name), text)
    return path.join(folder, name)
  }
  const between = above.length === 0 ? [] : ['-untrusted', file('between.pem', above.join(''))]
  const strict = ['-x509_strict', '-check_ss_sig', '-purpose', 'sslclient', '-no-CApath', '-no-CAstore']
  const trusted = ['-CAfile', file('root.pem', root)]
  const { status, text } = runOpenssl(['verify', ...strict, ...trusted, ...between, file('leaf.pem', leaf)])
  assert.equal(status, 0, text)
  return serial
}

const renewed = async (agent: Agent): Promise<void> => {
  const { serial } = identityOf(agent).current
  agent.signal('SIGUSR2')
  await eventually(
    'a certificate that is renewed and proven',
    () => {
      const { current } = identityOf(agent)
      return current.serial !== serial && current.proven
    },
    { withinMs: 30_000 },
  )
}

/** `root`: what its certificates hang under, PEM. Returns the serials that its epochs ended with. */
const live = async (t: TestContext, plane: Plane, id: string, root: string): Promise<readonly string[]> => {
  const seen: string[] = []
  const see = (of: Agent): void => void seen.push(verified(t, of, root))
  const agent = startAgent(t, { join: await plane.token('--node', id, '--profile', profile) })
  await connected(plane, id, 1)
  see(agent)
  for (let times = 0; times < 2; times++) {
    await renewed(agent)
    see(agent)
  }
  await changeProfile(plane, profile, { 'certificate.lifetimeMs': 8_000 })
  await renewed(agent)
  await stoppedUntilExpired(agent)
  await changeProfile(plane, profile, { 'certificate.lifetimeMs': 600_000 })
  const again = agent.restart()
  await connected(plane, id, 2)
  see(again)
  await act(plane, id, 'quarantine', { reason: 'odd traffic' })
  await act(plane, id, 'release')
  await connected(plane, id, 3, 60_000)
  see(again)
  assert.equal(new Set(seen).size, 5, 'each is another certificate')
  await act(plane, id, 'revoke', { reason: 'stolen' })
  await eventually('the agent to hear of it', async () => {
    const { body } = await plane.api('GET', `/v1/nodes/${id}`)
    return body.membership === 'revoked' && body.channel_open === false
  })
  const types = (await journalOf(plane, { node: id })).map(({ type }) => type)
  for (const type of ['host.enrolled', 'node.recovered', 'host.revoked']) assert.ok(types.includes(type), type)
  await again.stop()
  return seen.slice(-2)
}

/** Quarantine and revocation are carried to the issuer, and their receipts say so. */
const arrived = async (plane: Plane, issuer: AddedIssuer, serials: readonly string[]): Promise<void> => {
  for (const serial of serials)
    await eventually(`${serial} to be revoked at ${issuer.name}`, () => issuer.isRevoked(serial))
  const { receipts } = succeeded(await plane.api('GET', '/v1/receipts'))
  assert.equal(receipts.length, 2)
  for (const { id } of receipts)
    await eventually('the line of the receipt', async () => {
      const { at_issuers: at } = succeeded(await plane.api('GET', `/v1/receipts/${id}`))
      return at.passed_on >= 1 && at.waiting === 0
    })
  assert.match((await plane.muster('receipt', 'show', receipts[0].id)).stdout, /at issuers +1 revoked there/)
}

/** In nothing that is printed, answered, recorded or shown to other users of the machine. */
const isNowhere = async (plane: Plane, secrets: Readonly<Record<string, string>>): Promise<void> => {
  const scan = scanFor(new Map(Object.entries(secrets).map(([name, text]) => [name, formsOfText(text)])))
  for (const text of Object.values(secrets)) {
    assert.ok(text.length > 12, 'it could be there by chance')
    assert.ok(scan(Buffer.from(`x${text}`)).length > 0, 'it is found where it is')
  }
  const processes = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => readIfThere(`/proc/${pid}/cmdline`))
  const answers = await Promise.all(
    ['/v1/issuers', '/v1/journal?limit=1000', '/v1/alerts', '/v1/ca'].map(async (where) =>
      JSON.stringify(succeeded(await plane.api('GET', where))),
    ),
  )
  const exported = await plane.muster('export')
  assert.equal(exported.code, 0, exported.stderr)
  const places = {
    log: plane.stdout() + plane.stderr(),
    processes: processes.join('\n'),
    answers: answers.join('\n') + exported.stdout,
    database: await rowsInDatabase(plane.data),
  }
  const files = fs
    .readdirSync(plane.data, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => [file.name, fs.readFileSync(path.join(file.parentPath, file.name))] as const)
  for (const [place, bytes] of [...Object.entries(places), ...files])
    assert.deepEqual(scan(Buffer.from(bytes)), [], `a secret is in ${place}`)
  // What Vault gives out for the secret ID.
  for (const [place, text] of Object.entries(places)) assert.doesNotMatch(text, /\bhvs\.[\w-]{20}/, place)
}

/** Every row of every table; empty where the store is among the files. */
const rowsInDatabase = async (data: string): Promise<string> => {
  const database = await databaseOf(data)
  if (database === null) return ''
  const connection = await database.connect()
  const select = async (text: string): Promise<readonly string[]> =>
    (await connection.run({ name: '', text })).rows.map(({ text: one }) => String(one))
  const tables = await select(
    'SELECT quote_ident(tablename) AS text FROM pg_tables WHERE schemaname = current_schema()',
  )
  assert.ok(tables.length > 10, tables.join())
  const rows: string[] = []
  for (const table of tables) rows.push(...(await select(`SELECT row::text AS text FROM ${table} AS row`)))
  return rows.join('\n')
}

const readIfThere = (file: string): string => {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    // It has ended meanwhile.
    return ''
  }
}

/** On the second store is what writes orders: the lives in every run, and what mostly waits in that with peers. */
const onceIsEnough = onPostgres() ? 'once is enough: it writes no orders' : false
const onceInTheShortRun = onPostgres() && !isPeersRun ? 'on PostgreSQL only in the run with peers' : false

const verbose = { args: ['--log-level', 'debug'] }

// Most of it is waiting for certificates to end.
describe('issuers', { concurrency: true }, () => {
  test('a node lives under a step-ca', async (t) => {
    const binary = withPeer(t, 'step-ca')
    if (binary === null || withPeer(t, 'openssl') === null) return
    const [server, plane] = await Promise.all([startStepCa(t, binary), startPlane(t, verbose)])
    const issuer = await addStepCa(plane, server, 'corp')
    await signProfile(plane, issuer, profile, { set: usual })
    await arrived(plane, issuer, await live(t, plane, 'gpu-1', issuer.root))
    await isNowhere(plane, issuer.secrets)
  })

  test('a node lives under a Vault', async (t) => {
    const binary = withPeer(t, 'vault')
    if (binary === null || withPeer(t, 'openssl') === null) return
    const [peer, plane] = await Promise.all([startVault(t, binary), startPlane(t, verbose)])
    const issuer = await addVault(plane, peer, 'vault')
    await signProfile(plane, issuer, profile, { set: usual, peer })
    await arrived(plane, issuer, await live(t, plane, 'gpu-1', issuer.root))
    await isNowhere(plane, issuer.secrets)
  })

  test('a node lives under an authority whose keys are in a token', { skip: onceIsEnough }, async (t) => {
    const tokens = softTokens(t, 'plane')
    if (tokens === null || withPeer(t, 'openssl') === null) return
    const keys = ['--root', 'pkcs11:token=plane;object=root', '--ca-key', 'pkcs11:token=plane']
    const token = ['--pkcs11-module', tokens.module, '--pkcs11-pin', tokens.pinFile]
    const plane = await startPlane(t, { args: [...verbose.args, ...keys, ...token], env: tokens.env })
    succeeded(await plane.api('POST', '/v1/profiles', { name: profile, from: 'gpu-cloud', set: usual }))
    const { roots } = succeeded(await plane.api('GET', '/v1/ca/bundle'))
    await live(t, plane, 'gpu-1', roots.join(''))
    await isNowhere(plane, { PIN: tokens.pin })
  })

  test("a node lives under an authority whose keys are in Vault's Transit", { skip: onceIsEnough }, async (t) => {
    const binary = withPeer(t, 'vault')
    if (binary === null || withPeer(t, 'openssl') === null) return
    const host = await transitHost(t, await startVault(t, binary))
    const { secretFile } = host
    assert.ok(secretFile !== null)
    const keys = ['--root', 'transit:key=root', '--ca-key', 'transit', '--responder-key', 'transit']
    const vault = ['--vault-address', host.address, '--vault-roots', host.rootsFile, '--vault-transit', host.mount]
    const plane = await startPlane(t, { args: [...verbose.args, ...keys, ...vault, '--vault-secret', secretFile] })
    succeeded(await plane.api('POST', '/v1/profiles', { name: profile, from: 'gpu-cloud', set: usual }))
    const { roots } = succeeded(await plane.api('GET', '/v1/ca/bundle'))
    await live(t, plane, 'gpu-1', roots.join(''))
    await isNowhere(plane, { token: fs.readFileSync(secretFile, 'utf8').trim() })
  })

  test(
    'a step-ca that is away for a third of a lifetime costs no node its identity, and another profile nothing',
    { skip: onceInTheShortRun },
    async (t) => {
      const binary = withPeer(t, 'step-ca')
      if (binary === null || withPeer(t, 'openssl') === null) return
      const [server, plane] = await Promise.all([startStepCa(t, binary), startPlane(t)])
      const issuer = await addStepCa(plane, server, 'corp')
      const lifetimeMs = 60_000
      const window = { 'certificate.renewFrom': 0.5, 'certificate.renewTo': 0.55 }
      await signProfile(plane, issuer, profile, { set: { ...usual, ...window, 'certificate.lifetimeMs': lifetimeMs } })
      const ids = ['away-1', 'away-2']
      const agents = await Promise.all(
        ids.map(async (id) => startAgent(t, { join: await plane.token('--node', id, '--profile', profile) })),
      )
      for (const id of ids) await connected(plane, id, 1)
      const firsts = agents.map((agent) => identityOf(agent).current)
      const enrollments = async (prefix: string): Promise<number> => {
        const watch = fairStopwatch()
        for (let at = 0; at < 5; at++) await activeNode(plane, `${prefix}-${at}`, 'gpu-cloud')
        return watch()
      }
      const beforeMs = await enrollments('before')

      // From before it is time to renew, for a third of the lifetime.
      const awayFromMs = Math.min(...firsts.map(({ issuedAtMs }) => issuedAtMs)) + 0.35 * lifetimeMs
      await eventually('the time to renew to be near', () => Date.now() > awayFromMs, { withinMs: lifetimeMs })
      await server.stop()
      const stoppedMs = Date.now()
      const meanwhileMs = await enrollments('meanwhile')
      assert.ok(meanwhileMs < 2 * beforeMs + 1000, `${meanwhileMs} ms instead of ${beforeMs} ms`)
      await eventually('a third of the lifetime', () => Date.now() > stoppedMs + lifetimeMs / 3, {
        withinMs: lifetimeMs,
      })
      const lost = await journalOf(plane, { type: 'order.lost' })
      for (const id of ids)
        assert.ok(
          lost.some(({ node }) => node === id),
          `${id} has asked in vain`,
        )
      await server.start()
      for (const [at, agent] of agents.entries())
        await eventually(
          'a certificate that was renewed',
          () => identityOf(agent).current.serial !== firsts[at]?.serial && identityOf(agent).current.proven,
          { withinMs: lifetimeMs },
        )
      for (const id of ids) {
        await connected(plane, id, 1)
        const types = (await journalOf(plane, { node: id })).map(({ type }) => type)
        for (const type of ['node.recovery_requested', 'node.lapsed'])
          assert.ok(!types.includes(type), `${id}: ${type}`)
      }
    },
  )
})
