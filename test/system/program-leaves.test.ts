// Leaves for programs, on a real plane over real TLS: who gets one, what it carries, what ends it, and that it opens nothing here.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, type KeyType } from '#pki/keys.ts'
import { nodeRoutes, type NodeRouteParts } from '#plane/boot/node-routes.ts'
import type { Core } from '#plane/core/core.ts'
import { recoveryRoutes, type RecoveryRouteParts } from '#plane/recovery/recovery-routes.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { nodeCall, type Identity } from '../process/node-call.ts'
import { openRawChannel } from '../process/raw-channel.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { recoverableNode } from '../process/raw-recovery.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { openTlsConnection } from '../process/tls-connection.ts'
import { channelOf } from './channel-setup.ts'

const shared = sharedPlane()

const outputs = [
  { name: 'db', usage: 'both', dns: ['{name}', 'db.{name}'], addresses: true },
  { name: 'probe', lifetimeMs: 3_600_000 },
]

const withOutputs = async (listed: readonly object[] = outputs): Promise<void> => {
  const { status, body } = await shared().api('PATCH', '/v1/profiles/gpu-cloud', { set: { outputs: listed } })
  assert.equal(status, 200, JSON.stringify(body))
}

const nameOf = (id: string, action: 'add' | 'remove', ...names: string[]) =>
  shared().api('POST', `/v1/nodes/${id}/names/${action}`, { names })

type Leaf = {
  readonly certificate: X509Certificate
  readonly serial: string
  readonly chain: string
  readonly csr: string
} & {
  readonly identity: Identity
}

const ask = (node: RawNode, output: string, csr: string) =>
  node.call('POST', `/v1/nodes/${node.id()}/programs/${output}`, { csr })

const serialOf = ({ serialNumber }: X509Certificate): string => serialNumber.toLowerCase().replace(/^0+/, '')

const leafOf = async (node: RawNode, output: string, type: KeyType = 'p256'): Promise<Leaf> => {
  const key = generateKey(type)
  const csr = makeCsr(key, 'anything')
  const { status, body } = await ask(node, output, csr)
  assert.equal(status, 200, JSON.stringify(body))
  const chain: string = body.certificate_chain
  const certificate = new X509Certificate(chain)
  const serial = serialOf(certificate)
  return { certificate, serial, chain, csr, identity: { keyPem: key.pkcs8Pem(), chainPem: chain } }
}

const codeOf = async (node: RawNode, output: string, csr = makeCsr(generateKey('p256'), 'x')): Promise<string> =>
  (await ask(node, output, csr)).body.code

type Lists = { issuer: string; role: string; number: number; next_update: string; list: string; certificate?: string }[]

const listsFor = async (node: RawNode): Promise<Lists> =>
  (await node.call('GET', `/v1/nodes/${node.id()}/program-lists`)).body.lists

const hasSerial = ({ list }: Lists[number], serial: string): boolean =>
  Buffer.from(list.replace(/-----[^-]+-----/g, ''), 'base64').includes(
    Buffer.from(serial.padStart(serial.length + (serial.length % 2), '0'), 'hex'),
  )

const isDenied = async (node: RawNode, { serial }: Leaf): Promise<boolean> =>
  (await listsFor(node)).some((list) => hasSerial(list, serial))

test('a leaf carries what an operator registered, under the programs root, and a repeated request gets the same bytes', async () => {
  await withOutputs()
  const node = await activeNode(shared(), 'prog-1')
  assert.equal(await codeOf(node, 'nothing'), 'OUTPUT_NOT_LISTED')
  assert.equal(await codeOf(node, 'db'), 'OUTPUT_WITHOUT_NAMES')
  assert.equal((await nameOf('prog-1', 'add', 'P1.Example.', '::ffff:10.0.0.7')).status, 200)
  const leaf = await leafOf(node, 'db')
  const { subjectAltName = '', subject } = leaf.certificate
  const { domain } = (await shared().api('GET', '/v1/ca')).body
  assert.equal(
    subjectAltName,
    `DNS:db.p1.example, DNS:p1.example, URI:spiffe://${domain}/node/prog-1/program/db, IP Address:10.0.0.7`,
  )
  assert.match(subject, /CN=db/)
  const again = await ask(node, 'db', leaf.csr)
  assert.equal(again.body.certificate_chain, leaf.chain)

  const bundle = (await shared().api('GET', '/v1/ca/bundle')).body
  assert.deepEqual(again.body.roots, bundle.programs)
  const [, issuing] = leaf.chain.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []
  const issuer = new X509Certificate(issuing ?? '')
  const root = new X509Certificate(bundle.programs[0])
  assert.ok(leaf.certificate.verify(issuer.publicKey) && issuer.verify(root.publicKey))
  assert.ok(!bundle.roots.includes(bundle.programs[0]))
  const { authorities } = (await shared().api('GET', '/v1/ca')).body
  const signing = authorities.filter(({ role }: { role: string }) => role.startsWith('programs-'))
  assert.deepEqual(signing.map(({ role }: { role: string }) => role).sort(), ['programs-issuing', 'programs-root'])

  // The key of a program is in use for everything else, and so is the node's own for a program.
  assert.equal(await codeOf(node, 'probe', leaf.csr), 'KEY_IN_USE')
  assert.equal((await node.renew({ key: node.key, csr: leaf.csr })).reply.body.code, 'KEY_IN_USE')
  assert.equal(await codeOf(node, 'probe', makeCsr(generateKey('p384'), 'x')), 'CSR_INVALID')

  const { programs } = (await shared().api('GET', '/v1/programs?node=prog-1')).body
  assert.deepEqual(
    programs.map(({ output, current }: { output: string; current: { serial: string } }) => [output, current.serial]),
    [['db', leaf.serial]],
  )
})

test('it opens nothing: no route of the node listener, no channel, no recovery', async (t) => {
  await withOutputs()
  const { node, target } = await recoverableNode(shared(), 'prog-2')
  const { identity } = await leafOf(node, 'probe')
  const routes = nodeRoutes({} as Core, { limits: {}, channel: {} } as NodeRouteParts)
  for (const { method, path, access, kind } of routes) {
    if (access === 'anyone') continue
    const address = path.replace(':id', 'prog-2').replace(':output', 'probe')
    // One each: a refused upgrade ends its connection.
    const connection = await openTlsConnection(t, node.target, identity)
    const reply =
      kind === 'upgrade'
        ? await connection.upgrade(address)
        : await connection.call(method as 'GET' | 'POST', address, ...(method === 'GET' ? [] : [{ garbage: 1 }]))
    assert.deepEqual([reply.status, reply.body.code], [401, 'CLIENT_CERT_UNKNOWN'], `${method} ${path}`)
  }
  const channel = await openRawChannel(node.target, identity, 'prog-2')
  assert.ok('status' in channel && channel.status === 401)
  // The recovery listener asks for no certificate: what it lets in is a proof in the request.
  for (const { method, path } of recoveryRoutes({} as Core, {} as RecoveryRouteParts)) {
    const { status } = await nodeCall(target, identity, method as 'POST', path, { node_id: 'prog-2' })
    assert.equal(status, 400, path)
  }
})

test('a name is one node’s: taking it denies the leaf at once, tells connected agents, and only then another has it', async () => {
  await withOutputs()
  const node = await activeNode(shared(), 'prog-3')
  const other = await activeNode(shared(), 'prog-4')
  assert.equal((await nameOf('prog-3', 'add', 'shared.example')).status, 200)
  const leaf = await leafOf(node, 'db')
  assert.equal((await nameOf('prog-4', 'add', 'shared.example')).body.code, 'NAME_TAKEN')
  assert.equal((await nameOf('prog-4', 'add', 'db.shared.example')).body.code, 'NAME_TAKEN', 'derived names, too')
  assert.equal((await nameOf('prog-4', 'add', '*.example')).body.code, 'NAME_INVALID')

  const hello = { agent_version: '0.4.0', capabilities: ['outputs'], config_revision: 0, trust_revision: 0 }
  const channel = await channelOf(other, { hello })
  const config = await channel.frame('config')
  assert.deepEqual(
    config.body.outputs.map(({ name, names }: { name: string; names: string[] }) => [name, names]),
    [
      ['db', []],
      ['probe', []],
    ],
  )
  const before = await listsFor(other)
  assert.deepEqual(before.map(({ role }) => role).sort(), ['issuing', 'root'])
  assert.ok(before.every(({ next_update: next }) => Date.parse(next) >= Date.now() + 7 * 86_400_000 - 1000))

  assert.equal((await nameOf('prog-3', 'remove', 'shared.example')).status, 200)
  assert.equal(await isDenied(other, leaf), true)
  const { body } = await channel.frame('program_lists')
  const numberOf = (lists: { issuer: string; number: number }[], issuer: string) =>
    lists.find((list) => list.issuer === issuer)?.number ?? 0
  const issuing = before.find(({ role }) => role === 'issuing')?.issuer ?? ''
  assert.ok(numberOf(body.lists, issuing) > numberOf(before, issuing))

  assert.equal((await nameOf('prog-4', 'add', 'shared.example')).status, 200)
  await eventually('the new names', () =>
    channel.frames.some(({ type, body: { outputs: sent } }) => type === 'config' && sent[0].names.length === 2),
  )
  channel.destroy()
})

test('revocation denies the leaves with the node; an output that is taken from the list ends', async () => {
  await withOutputs()
  const watcher = await activeNode(shared(), 'prog-5')
  const node = await activeNode(shared(), 'prog-6')
  const first = await leafOf(node, 'probe')
  const second = await leafOf(node, 'probe')
  assert.equal(await isDenied(watcher, first), false, 'two are good at a time')
  const { body: receipt } = await shared().api('POST', '/v1/nodes/prog-6/revoke', { reason: 'stolen' })
  for (const { serial } of [first, second])
    assert.ok(
      receipt.certificates.some((key: string) => key.endsWith(`/${serial}`)),
      JSON.stringify(receipt),
    )
  assert.ok((await isDenied(watcher, first)) && (await isDenied(watcher, second)))

  const own = await leafOf(watcher, 'probe')
  await withOutputs(outputs.slice(0, 1))
  await eventually('the end of the output', () => isDenied(watcher, own))
  assert.equal(await codeOf(watcher, 'probe'), 'OUTPUT_NOT_LISTED')
})

test('a leaf that is signed while its node is revoked, or its name taken, is never overlooked', async () => {
  await withOutputs()
  const watcher = await activeNode(shared(), 'prog-9')
  const issued: string[] = []
  const asking = async (node: RawNode, times: number): Promise<void> => {
    for (let asked = 0; asked < times; asked++) {
      const { status, body } = await ask(node, 'db', makeCsr(generateKey('p256'), 'x'))
      if (status === 200) issued.push(serialOf(new X509Certificate(body.certificate_chain)))
    }
  }
  for (const at of [0, 1, 2, 3]) {
    const id = `racing-${at}`
    const node = await activeNode(shared(), id)
    assert.equal((await nameOf(id, 'add', `race-${at}.example`)).status, 200)
    const ending =
      at % 2 === 0
        ? () => shared().api('POST', `/v1/nodes/${id}/quarantine`, { reason: 'x' })
        : () => nameOf(id, 'remove', `race-${at}.example`)
    const both = asking(node, 4)
    assert.equal((await ending()).status, 200)
    await both
  }
  const lists = await listsFor(watcher)
  // Those who verify programs and are no node get them from an operator.
  assert.deepEqual((await shared().api('GET', '/v1/program-lists')).body.lists, lists)
  for (const serial of issued)
    assert.ok(
      lists.some((list) => hasSerial(list, serial)),
      serial,
    )
})

test('a machine that takes the place of another by --replace ends the programs of that other', async () => {
  await withOutputs()
  const node = await activeNode(shared(), 'prog-10')
  const old = await leafOf(node, 'probe')
  const { body } = await shared().api('POST', '/v1/tokens', { node: 'prog-10', replace: true })
  const next = rawNode(node.target)
  assert.equal((await next.enrollByToken(body.secret)).status, 200)
  assert.equal((await next.confirm()).status, 200)
  assert.equal(await isDenied(next, old), true)
})

test('after a recovery the leaves of the former epoch stay good until the new ones are in place', async () => {
  await withOutputs()
  const { node, comeBack } = await recoverableNode(shared(), 'prog-7')
  const old = await leafOf(node, 'probe')
  await comeBack()
  const fresh = await leafOf(node, 'probe')
  assert.equal(await isDenied(node, old), false)
  const hello = { agent_version: '0.4.0', capabilities: ['outputs'], config_revision: 0, trust_revision: 0 }
  const channel = await channelOf(node, { hello })
  channel.send('outputs_state', { outputs: [{ name: 'probe', serial: fresh.serial, failure: 'nginx did not reload' }] })
  await eventually('the end of the former epoch', () => isDenied(node, old))
  assert.equal(await isDenied(node, fresh), false)
  const conditions = async () => (await shared().api('GET', '/v1/nodes/prog-7')).body.conditions
  assert.deepEqual(
    (await conditions()).map(({ name }: { name: string }) => name),
    ['output_failed'],
  )
  const { sentences } = (await shared().api('GET', '/v1/nodes/prog-7/explain')).body
  assert.ok(
    sentences.includes(
      'Output probe is in place, and something after that failed: its agent says: nginx did not reload.',
    ),
    sentences,
  )
  channel.send('outputs_state', {
    outputs: [{ name: 'probe', place: '/etc/probe', serial: fresh.serial, failure: null }],
  })
  await eventually('the end of the condition', async () => (await conditions()).length === 0)
  const { programs } = (await shared().api('GET', '/v1/nodes/prog-7')).body
  const probe = programs.find(({ output }: { output: string }) => output === 'probe')
  assert.deepEqual(
    [probe.output, probe.state, probe.serial, probe.place, probe.why],
    ['probe', 'in_place', fresh.serial, '/etc/probe', null],
  )
  channel.destroy()
})

test('a withdrawn issuing CA of programs is on the list of its root, and the next leaf hangs under its successor', async () => {
  await withOutputs()
  const node = await activeNode(shared(), 'prog-8')
  const before = await leafOf(node, 'probe')
  const { issuer = '' } = (await listsFor(node)).find(({ role }) => role === 'issuing') ?? {}
  const { status, body } = await shared().api('POST', '/v1/ca/withdraw', { issuer, reason: 'its key was copied' })
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual([body.withdrawn, body.successors.length], [[issuer], 1])
  const [, withdrawn = ''] = before.chain.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []
  const serial = new X509Certificate(withdrawn).serialNumber.toLowerCase()
  const lists = await listsFor(node)
  assert.ok(lists.some((list) => list.role === 'root' && hasSerial(list, serial)))
  assert.ok(
    lists.every((list) => list.issuer !== issuer),
    'its own key signs no list any more',
  )
  const after = await leafOf(node, 'probe')
  assert.notEqual(after.certificate.issuer, before.certificate.issuer)
  const root = (await shared().api('GET', '/v1/ca')).body.authorities.find(
    ({ role }: { role: string }) => role === 'programs-root',
  )
  const refused = await shared().api('POST', '/v1/ca/withdraw', { issuer: root.id, reason: 'x' })
  assert.equal(refused.body.code, 'ISSUER_NOT_WITHDRAWABLE')
})
