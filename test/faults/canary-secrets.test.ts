// Secrets are planted in every place a secret can be, and in many where none should be. Then a plane and its agents live
// through all there is, at the highest log level, and nothing of any secret may be found where it is not meant to be.

import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { keyTypes } from '#domain/core/profile.ts'
import { generateKey } from '#pki/keys.ts'
import { repository, startChild } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { openEvidence } from './canary-evidence.ts'
import { judge, type MeantPlaces, type Verdict } from './canary-findings.ts'
import { openLedger, secretKinds } from './canary-ledger.ts'
import * as life from './canary-life.ts'
import { makeMistakes, meetAnImpostor } from './canary-mistakes.ts'
import { nodesPlant, operatorsPlant, recoveriesPlant, anonymousPlant } from './canary-plants.ts'
import { openWorld, type World } from './canary-world.ts'

const identity = ['file agents/{owner}/identity.json', 'file agents/copy-of-{owner}/identity.json'] as const

/** Which places are meant to hold which secret. Everything else is a finding. */
const meant: MeantPlaces = {
  'enrollment token': [
    'stdout of muster token create --node {owner}*',
    'stdout of muster node bundle {owner}*',
    'file out/{owner}',
    'answer to POST /v1/tokens',
    { place: 'file joins/{owner}/join', until: 'used' },
    'environment of agent {owner}',
  ],
  "administrator's key": ['file data/admin.key', 'file {owner}/admin.key'],
  "operator's key": ['stdout of muster key create {owner}*', 'file etc/{owner}.key'],
  'sealing key': ['file etc/seal.key'],
  'key of the plane': [],
  'bearer secret': [],
  'root key kept elsewhere': ['file {owner}/root.key'],
  'key of an agent': [...identity, 'file damaged/identity.json'],
  'recovery key of an agent': [...identity, 'file damaged/identity.json'],
  'WireGuard key of an agent': ['file agents/{owner}/wireguard.key'],
  'key of a program': [
    'file agents/{owner}/programs.json',
    { place: 'file published/{owner}/.muster.web.*/key.pem', folder: 'for all' },
    { place: 'file published/{owner}/.muster.web.*/combined.pem', folder: 'for all' },
  ],
  'bearer token': ['file agents/{owner}/identity.json'],
  'repair token': ['file out/{owner}.repair.json', { place: 'file agents/{owner}/repair.json', until: 'used' }],
  'bootstrap key': ['file etc/static.key'],
  'webhook secret': ['file etc/webhook.secret'],
  'webhook address': ['environment of the plane*'],
  'out of place': ['file planted/*', 'arguments of muster *'],
}

const live = async (world: World): Promise<void> => {
  const machines = await life.join(world)
  await Promise.all([
    anonymousPlant(world),
    nodesPlant(world).then(() => operatorsPlant(world)),
    recoveriesPlant(world),
    life.renewNow(world),
    life.joinNetwork(world),
  ])
  const [recovered] = await Promise.all([
    life.expireAndRecover(world, machines),
    life.raiseAlert(world, machines),
    life.startCopy(world),
    life.fillDisk(world),
    life.setClockWrong(world),
    makeMistakes(world),
    meetAnImpostor(world),
  ])
  const env = await life.killBoth(world, machines.env)
  await Promise.all([life.repair(world, env), life.lookAround(world)])
  await life.readEverything(world, recovered.key)
  await life.endAll(world, [recovered.key, recovered.bearer, env, machines.hardware])
  for (const { body, delivery } of world.receiver.received) {
    world.evidence.keep('a delivery to the webhook', JSON.stringify([delivery, body]))
  }
}

const told = ({ findings }: Verdict): readonly string[] => [
  ...new Set(findings.map(({ secret, place }) => `${secret.kind}, ${secret.owner}: in ${place}`)),
]

test('no secret is found anywhere but where it is meant to be', async (t) => {
  const world = await openWorld(t)
  await live(world)
  const control = world.ledger.shapeless('the control')
  const planted = fs.openSync(world.at('data/left-behind'), 'w', 0o600)
  fs.writeSync(planted, Buffer.from(control).toString('hex'))
  fs.closeSync(planted)
  const talkative = startChild(t, 'sh', ['-c', 'echo "level=trace msg=$WORD" >&2'], {
    env: { WORD: control },
  })
  world.evidence.watch('somebody talkative', talkative)
  await talkative.ended
  world.look(true)
  world.evidence.lookInto(world.at('data/muster.db'))

  const secrets = world.ledger.secrets()
  const verdict = judge(world.evidence.all(), secrets, meant)
  // The two that were planted for this very purpose, and nothing else.
  assert.deepEqual(
    told(verdict).toSorted(),
    [
      'out of place, the control: in file data/left-behind',
      'out of place, the control: in stderr of somebody talkative',
    ],
    verdict.findings.map(({ before, place }) => `${place}: ...${before}`).join('\n'),
  )
  assert.deepEqual(verdict.open, [], 'files with secrets that others could get at')
  assert.deepEqual(verdict.idle, [], 'rows of the table that nothing needed')

  const kinds = new Set([...secrets.keys()].map(({ kind }) => kind))
  assert.deepEqual(
    secretKinds.filter((kind) => !kinds.has(kind)),
    [],
    'kinds of which there was none',
  )
  const ofPlane = new Set(
    [...secrets.keys()].filter(({ kind }) => kind === 'key of the plane').map(({ owner }) => owner),
  )
  for (const role of ['root', 'issuing', 'server', 'recovery', 'recovery-server', 'statement', 'journal']) {
    assert.ok(ofPlane.has(role), `the ${role} key was not learned`)
  }
  const ofNode = [...secrets.keys()].filter(({ kind, owner }) => kind === 'key of an agent' && owner === 'key-1')
  assert.ok(ofNode.length >= 3, 'several generations of keys')
  assert.match(journalOf(world), /\[secret\]/, 'what was pasted into texts is shown as taken out')
  assertPrivate(world)
})

const journalOf = (world: World): string =>
  world.evidence
    .all()
    .find(({ place }) => place === 'journal')
    ?.bytes.toString('utf8') ?? ''

/** Whatever is in it: the folders of plane and agents are their owners' alone, and nothing half written is left in them. */
const assertPrivate = (world: World): void => {
  const files = world.evidence.all().filter(({ place, last }) => last && /^file (data|agents|tmp)\//.test(place))
  const open = files.filter(({ modes }) => modes !== null && ((modes.file | modes.folder) & 0o077) !== 0)
  assert.deepEqual(
    open.map(({ place, modes }) => [place, modes]),
    [],
  )
  const odd = files
    .map(({ place }) => place.slice('file '.length))
    .filter((file) => !known.some((shape) => shape.test(file)))
  assert.deepEqual(odd, [], 'files that nobody knows')
}

const known = [
  /^data\/(admin\.key|muster\.db(-wal|-shm)?|plane\.(lock|domain)|journal-heads\.json|muster\.reserve|left-behind|keys\/[a-z-]+(\.[0-9a-f]+)*\.key)$/,
  /^agents\/[a-z0-9-]+\/(identity\.json|status\.json|record|sighting|sightings-earlier|config\.json|addresses\.json|marked\.json|reserve|agent\.lock|wireguard\.key|peers\.json|programs\.json|program-lists\.json)$/,
  /^tmp\/\.keep$/,
]

test('the unit of the agent allows no core dump: keys are in the memory of the process', () => {
  const unit = fs.readFileSync(path.join(repository, 'packaging/systemd/muster-agent.service'), 'utf8')
  assert.match(unit, /^LimitCORE=0$/m)
  assert.match(unit, /^UMask=0077$/m)
  assert.match(unit, /^StateDirectoryMode=0700$/m)
})

const nowhere = Object.fromEntries(secretKinds.map((kind) => [kind, []])) as unknown as MeantPlaces

const base64After = (before: string, encoding: 'base64' | 'base64url') => (secret: string) =>
  Buffer.from(before + secret).toString(encoding)

const disguises: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (secret) => `"msg":"${secret}"`,
  'a piece of it': (secret) => secret.slice(10, 34),
  hex: (secret) => Buffer.from(secret).toString('hex'),
  HEX: (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  'base64, behind nothing': base64After('', 'base64'),
  'base64, behind one byte': base64After('a', 'base64'),
  'base64url, behind two bytes': base64After('ab', 'base64url'),
  'URL-encoded': encodeURIComponent,
  'in JSON, twice': (secret) => JSON.stringify(JSON.stringify({ secret })),
}

const keyDisguises: Readonly<Record<string, (pem: string) => string | Buffer>> = {
  PEM: (pem) => pem,
  'PEM in JSON': (pem) => JSON.stringify({ pem }),
  // Ed25519 has one.
  'a line of PEM': (pem) => pem.split('\n').at(pem.length < 150 ? 1 : 2) ?? '',
  DER: (pem) => Buffer.from(pem.replace(/-----.*-----|\n/g, ''), 'base64'),
  JWK: (pem) => JSON.stringify(createPrivateKey(pem).export({ format: 'jwk' })),
  hex: (pem) => Buffer.from(pem.replace(/-----.*-----|\n/g, ''), 'base64').toString('hex'),
}

test('a leak is found whatever it is disguised as, and wherever it is', async (t) => {
  const ledger = openLedger()
  const root = tempFolder(t)
  const evidence = openEvidence(root)
  for (const [name, disguise] of Object.entries(disguises)) {
    fs.writeFileSync(path.join(root, name), disguise(ledger.misplaced(name)))
    const awkward = `"${ledger.shapeless(`${name}, inside`)}" & +/\\`
    ledger.learn('out of place', `${name}, awkward`, awkward)
    fs.writeFileSync(path.join(root, `${name}, awkward`), disguise(awkward))
  }
  for (const [name, disguise] of Object.entries(keyDisguises)) {
    for (const type of keyTypes) {
      const pem = generateKey(type).pkcs8Pem()
      ledger.learn('out of place', `${type} ${name}`, pem)
      fs.writeFileSync(path.join(root, `${type} ${name}`), disguise(pem))
    }
  }
  const database = new DatabaseSync(path.join(root, 'database'))
  database.exec('CREATE TABLE t (a TEXT, b BLOB)')
  const row = [ledger.misplaced('a text in a row'), Buffer.from(ledger.shapeless('bytes in a row'))] as const
  database.prepare('INSERT INTO t VALUES (?, ?)').run(...row)
  database.close()
  evidence.lookInto(path.join(root, 'database'))
  const program = 'console.log(process.env.PRINTED); setInterval(() => {}, 1000)'
  const child = startChild(t, process.execPath, ['-e', program, ledger.misplaced('an argument')], {
    env: { PRINTED: ledger.misplaced('a variable that is printed') },
  })
  evidence.watch('a process', child)
  await eventually('it to speak', () => child.stdout() !== '')
  evidence.look(true)
  await child.stop()

  const { findings } = judge(evidence.all(), ledger.secrets(), nowhere)
  const found = new Set(findings.map(({ secret }) => secret.owner))
  const missed = [...ledger.secrets().keys()].filter(({ owner }) => !found.has(owner))
  assert.deepEqual(missed, [])
  const places = findings
    .filter(({ secret }) => secret.owner === 'a variable that is printed')
    .map(({ place }) => place)
  assert.deepEqual([...new Set(places)].toSorted(), ['environment of a process', 'stdout of a process'])
})

test('a secret in its place is readable by its owner only, removed once it is used, and known', () => {
  const ledger = openLedger()
  const token = `enroll_${'a'.repeat(43)}`
  ledger.learn('enrollment token', 'n1', token)
  const table: MeantPlaces = {
    ...nowhere,
    'enrollment token': [{ place: 'file {owner}/join', until: 'used' }, 'stdout of nobody'],
  }
  const file = (place: string, text: string, last: boolean, mode = 0o600) => ({
    ...{ place, bytes: Buffer.from(text), last },
    modes: { file: mode, folder: 0o700 },
  })
  const judged = (...seen: Parameters<typeof judge>[0]) => judge(seen, ledger.secrets(), table)
  assert.deepEqual(judged(file('file n1/join', token, false)), {
    ...{ findings: [], open: [], idle: ['enrollment token: stdout of nobody'] },
  })
  assert.deepEqual(judged(file('file n1/join', token, false, 0o640)).open, ['file n1/join'])
  assert.deepEqual(told(judged(file('file n1/join', token, true))), ['enrollment token, n1: in file n1/join'])
  assert.equal(told(judged(file('file n2/join', token, false))).length, 1)
  const unknown = told(judged(file('file log', `enroll_${'b'.repeat(43)}`, false)))
  assert.deepEqual(unknown, ['out of place, nobody knows: in file log'])
})
