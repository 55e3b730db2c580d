import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import type { ServiceDefinition } from '#wire/fleet/overlay-definition.ts'
import { thisNode } from '../../../../test/fakes/host-of-programs.ts'
import {
  overlayPlace,
  overlayStatement,
  serviceNamed,
  shown,
  signedCheck as checkIn,
  signedService as serviceIn,
} from '../../../../test/fakes/signed-overlays.ts'
import { spkiOf, withField } from '../../../../test/fakes/signed-tasks.ts'
import { judgeOverlay, overlayInForce, signedCheck, signedService, type OverlayFacts } from './judge-overlay.ts'

const key = generateKey('ed25519')
const nonce = 'nonce-of-this-helper'
const terms: NonNullable<ServiceDefinition['terms']> = {
  user: 'app',
  environment: { CONF: '{overlay}/app.conf' },
  working_directory: '{overlay}/etc',
  restart: 'on-failure',
  memory_bytes: 2 ** 30,
  cpus: null,
  open_files: 64,
}
const app = serviceNamed('app', { command: ['/usr/bin/app', '--config={overlay}/app.conf'], terms })
const disks = { name: 'disks', command: ['/usr/bin/disks', '{overlay}/limits'] }
const content = { nonce, services: [serviceIn(app)], checks: [checkIn(disks)] }
const right = overlayStatement(key, content)

const facts = (change: Partial<OverlayFacts> = {}): OverlayFacts => ({
  ...{ text: right, node: thisNode, pinned: [spkiOf(key)], epoch: 3, nonces: [nonce] },
  ...change,
})
const verdict = (change: Partial<OverlayFacts> = {}): string => {
  const judged = judgeOverlay(facts(change))
  return judged.kind === 'taken' ? 'taken' : judged.fault
}
const inForce = (text: string | null = right) => overlayInForce(text, { node: thisNode, pinned: [spkiOf(key)] })
const statement = () => {
  const value = inForce()
  return 'fault' in value ? assert.fail(value.why) : value
}

test('a statement with a nonce of this helper, under a pinned key, is taken', () => {
  assert.equal(verdict(), 'taken')
  assert.equal(verdict({ epoch: null }), 'taken')
  assert.equal(verdict({ text: overlayStatement(key, { ...content, epoch: 4 }) }), 'taken')
})

test('every field is signed', () => {
  const changes = {
    domain: 'other.test',
    node: 'gpu-002',
    epoch: 4,
    vcluster: null,
    vcluster_revision: 8,
    services: [],
    checks: [],
    issued_ms: 0,
    nonce: 'nonce-of-another-one',
  }
  for (const [field, value] of Object.entries(changes))
    assert.equal(verdict({ text: withField(right, field, value) }), 'STATEMENT_NOT_SIGNED', field)
  assert.equal(verdict({ text: withField(right, 'more', 1) }), 'STATEMENT_NOT_SIGNED')
  assert.equal(verdict({ text: right.replace('overlay1.', 'verifiers1.') }), 'STATEMENT_NOT_SIGNED')
  assert.equal(verdict({ text: '' }), 'STATEMENT_NOT_SIGNED')
})

test('what another key has signed, what is for another node or an epoch that is over, and what was not asked for is refused', () => {
  assert.equal(verdict({ pinned: [spkiOf(generateKey('ed25519'))] }), 'STATEMENT_NOT_SIGNED')
  assert.equal(verdict({ pinned: [] }), 'STATEMENT_NOT_SIGNED')
  assert.equal(verdict({ node: { ...thisNode, id: 'gpu-002' } }), 'STATEMENT_OF_ANOTHER')
  assert.equal(verdict({ node: { ...thisNode, domain: 'other.test' } }), 'STATEMENT_OF_ANOTHER')
  assert.equal(verdict({ epoch: 4 }), 'STATEMENT_OLDER')
  assert.equal(verdict({ nonces: [] }), 'STATEMENT_REPLAYED')
  assert.equal(verdict({ nonces: ['nonce-of-another-one'] }), 'STATEMENT_REPLAYED')
})

test('the one that was taken holds without its nonce, and no longer than its key is pinned', () => {
  assert.equal('fault' in inForce(), false)
  for (const fault of [
    inForce(null),
    inForce('damaged'),
    overlayInForce(right, { node: thisNode, pinned: [spkiOf(generateKey('ed25519'))] }),
    overlayInForce(right, { node: { ...thisNode, id: 'gpu-002' }, pinned: [spkiOf(key)] }),
  ])
    assert.ok('fault' in fault && fault.fault === 'STATEMENT_MISSING', JSON.stringify(fault))
})

test('a service is started as it was signed: with the folder in its place, as the node and the vCluster of the statement', () => {
  assert.deepEqual(signedService(statement(), 'app', shown(app)), {
    arguments: [`--config=${overlayPlace}/app.conf`],
    environment: {
      MUSTER_OVERLAY: overlayPlace,
      MUSTER_VCLUSTER: 'training',
      MUSTER_NODE: thisNode.id,
      CONF: `${overlayPlace}/app.conf`,
    },
    working_directory: `${overlayPlace}/etc`,
    restart: 'on-failure',
    limits: { memory_bytes: 2 ** 30, cpus: null, open_files: 64 },
  })
  assert.deepEqual(signedCheck(statement(), 'disks', shown(disks)), { arguments: [`${overlayPlace}/limits`] })
})

test('what stands for {overlay} is a folder that a program which parses its words takes for nothing else', () => {
  const startedIn = (folder: string): string => {
    const service = signedService(statement(), 'app', { definition: app, folder })
    const check = signedCheck(statement(), 'disks', { definition: disks, folder })
    assert.equal('kind' in service, 'kind' in check)
    return 'kind' in service ? service.kind : 'signed'
  }
  for (const folder of [
    '/overlay/current',
    '/srv/muster-agent.1/@a_b+c/overlay/current',
    '/opt/a/.muster/overlay/current',
  ])
    assert.equal(startedIn(folder), 'signed', folder)
  const others = [
    '$(id)',
    '`id`',
    'a b',
    'a;b',
    'a|b',
    "a'b",
    'a"b',
    'a\\b',
    'a\tb',
    'a\nb',
    'a=b',
    'a,b',
    'a:b',
    '{overlay}',
    'ä',
  ]
  for (const name of [...others, '', '.', '..', '..a'])
    for (const folder of [`/${name}/overlay/current`, `/srv/${name}/a/overlay/current`])
      assert.equal(startedIn(folder), 'folder-unsafe', folder)
  for (const folder of [
    '/srv/overlay/current\n',
    '/srv/overlay/current/',
    'srv/overlay/current',
    '/srv/current',
    '/a/xoverlay/current',
  ])
    assert.equal(startedIn(folder), 'folder-unsafe', folder)
})

test('another definition, another name and none at all are refused', () => {
  const refused = (name: string, definition: ServiceDefinition | null): string => {
    const signed = signedService(statement(), name, definition === null ? undefined : shown(definition))
    return 'fault' in signed ? signed.fault : 'signed'
  }
  assert.equal(refused('app', app), 'signed')
  assert.equal(refused('app', null), 'STATEMENT_MISSING')
  const others: readonly ServiceDefinition[] = [
    { ...app, command: ['/usr/bin/app'] },
    { ...app, command: ['/usr/bin/other', '--config={overlay}/app.conf'] },
    { ...app, terms: null },
    { ...app, terms: { ...terms, environment: {} } },
    { ...app, terms: { ...terms, user: null } },
    { ...app, terms: { ...terms, restart: 'always' } },
    { ...app, terms: { ...terms, memory_bytes: null } },
    { ...app, terms: { ...terms, working_directory: '/' } },
    { ...app, name: 'other' },
  ]
  for (const other of others) assert.equal(refused('app', other), 'NOT_IN_STATEMENT', JSON.stringify(other))
  assert.equal(refused('other', app), 'NOT_IN_STATEMENT')
  assert.equal(refused('disks', serviceNamed('disks', { command: disks.command })), 'NOT_IN_STATEMENT')
  for (const [name, definition] of [
    ['disks', { ...disks, command: ['/usr/bin/disks'] }],
    ['kernel-errors', disks],
    ['disks', { name: 'disks', command: ['muster:kernel-errors'] }],
  ] as const) {
    const signed = signedCheck(statement(), name, shown({ ...definition, command: [...definition.command] }))
    assert.ok('fault' in signed && signed.fault === 'NOT_IN_STATEMENT')
  }
})
