import assert from 'node:assert/strict'
import { test } from 'node:test'
import { domainRow, profileRow, vclusterRow } from '../../../test/fakes/sample-rows.ts'
import { nothingTagged } from '#domain/core/hardware-profile.ts'
import { noOverlay, usualTerms } from '#domain/fleet/overlay.ts'
import { configurationOf, endpointSet, trustOf, type ConfigurationFacts } from './configuration.ts'

const profile = profileRow('gpu-cloud').value
const domain = domainRow().value
const urls = { node: 'https://plane.example:8443', recovery: 'https://plane.example:8442', marked: true }
const node = { id: 'gpu-001', machine: { ...nothingTagged, tags: ['h100'] } }
const offers = new Set(['service_terms', 'health_checks'])
const base = { node, offers, profile, domain, vcluster: null, wireguard: null }
const facts: ConfigurationFacts = { ...base, outputs: null, urls }
const revisionWith = (changed: Partial<ConfigurationFacts> = {}): number =>
  configurationOf({ ...facts, ...changed }).revision

const timeSync = { name: 'chronyd', command: ['/usr/sbin/chronyd', '-d'] }
const keepingTime = { ...domain, maintenance: { ...domain.maintenance, timeSync } }
const worker = { name: 'worker', command: ['{overlay}/bin/work'] }
const training = vclusterRow('training', {
  revision: 3,
  policy: { enforcementMode: 'enforce', execWhitelist: ['nvidia-smi'], shellWhitelist: [], regulated: true },
  overlay: { ...noOverlay, files: [{ path: 'bin/work', mode: 0o755, content: '#!/bin/sh' }], services: [worker] },
}).value

test("the revision changes with every part of a node's configuration, and with nothing else", () => {
  const revision = revisionWith()
  assert.ok(Number.isSafeInteger(revision) && revision > 0)
  const others = [
    revisionWith({ vcluster: training }),
    revisionWith({ vcluster: { ...training, revision: 4 } }),
    revisionWith({ domain: keepingTime }),
    revisionWith({ profile: { ...profile, certificate: { ...profile.certificate, lifetimeMs: 1 } } }),
    revisionWith({ urls: { ...urls, node: 'https://other.example:8443' } }),
    revisionWith({ urls: { ...urls, recovery: 'https://other.example:8442' } }),
    revisionWith({ profile: profileRow('mesh-paas').value }),
  ]
  assert.equal(new Set([revision, ...others]).size, 8)
  assert.equal(
    revisionWith({ profile: { ...profile, description: 'said otherwise' }, domain: { ...domain, drainMs: 1 } }),
    revision,
  )
})

test('maintenance mode: the policy of the domain, time sync if it names one, no files, and no drift', () => {
  const overlay = {
    vcluster_revision: 0,
    policy: { enforcement_mode: 'observe', exec_whitelist: [], shell_whitelist: [], regulated: false },
    files: [],
    services: [],
    detect_drift: false,
  }
  const bare = configurationOf(facts)
  assert.deepEqual([bare.vcluster, bare.overlay], [null, overlay])
  assert.deepEqual(configurationOf({ ...facts, domain: keepingTime }).overlay, { ...overlay, services: [timeSync] })
})

test('assigned: the policy, files and services of the vCluster, and time sync unless it has its own', () => {
  const { vcluster, overlay } = configurationOf({ ...facts, vcluster: training, domain: keepingTime })
  assert.deepEqual(
    [vcluster, overlay],
    [
      'training',
      {
        vcluster_revision: 3,
        policy: { enforcement_mode: 'enforce', exec_whitelist: ['nvidia-smi'], shell_whitelist: [], regulated: true },
        files: [{ path: 'bin/work', mode: 0o755, content: '#!/bin/sh' }],
        services: [timeSync, worker],
        detect_drift: true,
      },
    ],
  )
  const own = { name: 'chronyd', command: ['/usr/bin/ptp'] }
  const another = { ...training, overlay: { ...noOverlay, services: [own] } }
  assert.deepEqual(configurationOf({ ...facts, vcluster: another, domain: keepingTime }).overlay?.services, [own])
})

test('an agent of 0.3 gets templates filled in, and neither services under terms nor checks', () => {
  const overlay = {
    files: [{ path: 'etc/node', mode: 0o644, content: '{id} {tags}' }],
    services: [worker, { name: 'feeder', command: ['/bin/feed'] }, { name: 'named', command: ['/bin/n', '{id}'] }],
    terms: [
      { ...usualTerms('feeder'), user: 'feed', limits: { memoryBytes: 2 ** 20, cpus: null, openFiles: null } },
      { ...usualTerms('named'), template: true },
    ],
    templates: ['etc/node'],
    checks: [{ name: 'disks', command: ['muster:read-only'], intervalMs: 1000, timeoutMs: 500 }],
  }
  const vcluster = { ...training, overlay }
  const newer = configurationOf({ ...facts, vcluster }).overlay
  assert.equal(newer?.files[0]?.content, 'gpu-001 h100')
  assert.deepEqual(newer?.services[1]?.terms, {
    ...{ user: 'feed', environment: {}, working_directory: null, restart: 'always' },
    ...{ memory_bytes: 2 ** 20, cpus: null, open_files: null },
  })
  assert.deepEqual(newer?.checks, [
    { name: 'disks', command: ['muster:read-only'], interval_ms: 1000, timeout_ms: 500 },
  ])
  const older = configurationOf({ ...facts, offers: new Set(), vcluster }).overlay
  assert.deepEqual(older?.services, [worker, { name: 'named', command: ['/bin/n', 'gpu-001'] }])
  assert.ok(!('checks' in (older ?? {})))
  assert.equal(older?.files[0]?.content, 'gpu-001 h100')
})

test('endpoints and roots have revisions of their own', () => {
  assert.notEqual(endpointSet(urls).revision, endpointSet({ ...urls, node: 'https://other.example' }).revision)
  const trusting = (root: string) => trustOf({ roots: () => [root], withdrawnIssuers: () => [] })
  assert.notEqual(trusting('a').revision, trusting('b').revision)
  assert.deepEqual(trusting('a'), trusting('a'))
})
