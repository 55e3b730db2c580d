// One row of every kind the fleet brought, for tests that store, move or list rows.

import { maintenancePolicy } from '#domain/core/domain-settings.ts'
import { noOverlay } from '#domain/fleet/overlay.ts'
import type { Allocation } from '#domain/fleet/allocation.ts'
import type { Read, Write } from '#domain/core/change.ts'
import type { Receipt } from '#domain/revocation/receipt.ts'
import { tableShapes } from '#plane/store/commit/columns.ts'
import { outsideIssuer, signingOrder, revocationThere } from './issuer-rows.ts'
import { lineRow, someRollout, someTask } from './task-rows.ts'

const atMs = 1_700_000_000_000

export const allocation = (id: string, changes: Partial<Allocation> = {}): Allocation => ({
  id,
  vcluster: 'blue',
  owner: 'alice',
  node: 'gpu-001',
  createdAtMs: atMs,
  createdBy: 'operator:scheduler',
  state: { kind: 'running' },
  ...changes,
})

export const receipt = (id: string, changes: Partial<Receipt> = {}): Receipt => ({
  id,
  kind: 'revoke',
  node: 'gpu-001',
  epoch: 1,
  reason: 'stolen',
  by: 'operator:carol',
  decidedAtMs: atMs,
  certificates: ['ca/a1'],
  replicas: [],
  peers: null,
  effectiveAtMs: null,
  settledAtMs: null,
  clocks: 'of the plane that decided',
  ...changes,
})

export const fleetRows: readonly Write[] = [
  {
    put: 'vcluster',
    value: {
      name: 'blue',
      description: '',
      revision: 1,
      policy: maintenancePolicy,
      overlay: noOverlay,
      outputs: [],
      tasks: { types: [] },
      peering: 'mesh',
      createdAtMs: atMs,
      createdBy: 'operator:carol',
      closed: false,
      deletedAtMs: null,
    },
  },
  { put: 'allocation', value: allocation('a1') },
  { put: 'wireguard-key', value: { publicKey: 'k1', node: 'gpu-001', sinceMs: atMs, endedAtMs: null } },
  { put: 'overlay-address', value: { address: 'fd00::1', node: 'gpu-001', sinceMs: atMs, releasedAtMs: null } },
  { put: 'receipt', value: receipt('r1') },
  {
    put: 'plan',
    value: {
      id: 'p1',
      action: { kind: 'delete-vcluster', vcluster: 'blue' },
      effects: [],
      by: 'operator:carol',
      computedAtMs: atMs,
      expiresAtMs: atMs + 1,
      applied: null,
    },
  },
  {
    put: 'peer-domain',
    value: {
      name: 'b.example',
      url: 'https://b.example:8443',
      roots: [],
      statementKeys: [],
      addedAtMs: atMs,
      addedBy: 'operator:carol',
      removedAtMs: null,
    },
  },
  {
    put: 'claim',
    value: { hardware: 'ff', domain: 'b.example', node: 'n7', state: 'active', atMs, receivedAtMs: atMs },
  },
  {
    put: 'hardware-profile',
    value: {
      tag: 'h100',
      description: '',
      firmware: 'baremetal',
      tags: [],
      slots: 1,
      sku: 'h100-8',
      createdAtMs: atMs,
      createdBy: 'operator:carol',
      removedAtMs: null,
    },
  },
  {
    put: 'task-signers',
    value: {
      number: atMs,
      signers: [
        {
          key: '1'.repeat(40),
          spki: 'MCowBQYDK2VwAyEA',
          version: 1,
          firstNumber: atMs,
          state: { kind: 'signing', sinceMs: atMs },
        },
      ],
    },
  },
  {
    put: 'worker-issuer',
    value: {
      name: 'east',
      iss: 'https://cluster.example',
      aud: 'muster',
      sub: 'system:serviceaccount:provisioning:worker',
      keys: { kind: 'url', url: 'https://cluster.example/openid/v1/jwks', ca: 'PEM' },
      types: ['run'],
      vclusters: ['blue'],
      createdAtMs: atMs,
      createdBy: 'operator:carol',
      removedAtMs: null,
    },
  },
  {
    put: 'worker',
    value: {
      id: 'east.5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21',
      issuer: 'east',
      instance: '5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21',
      iss: 'https://cluster.example',
      sub: 'system:serviceaccount:provisioning:worker',
      issuerSinceMs: atMs,
      enrolledAtMs: atMs,
      current: { issuer: 'ca', serial: 'b2', spki: 's2', sha256: 'f2', issuedAtMs: atMs, notAfterMs: atMs + 1e12 },
      former: null,
      tokens: [{ hash: 'h1', spki: 's2', untilMs: atMs + 1 }],
      revoked: null,
    },
  },
  { put: 'task', value: someTask() },
  { put: 'task-line', value: lineRow().value },
  { put: 'task-rollout', value: someRollout() },
  { put: 'rollout-nodes', value: { rollout: someRollout().id, part: 0, nodes: ['gpu-001'], untilMs: atMs + 1e12 } },
  { put: 'run-tally', value: { of: 'operator:key-1', slots: [{ atMs, runs: 3 }] } },
  { put: 'outside-issuer', value: outsideIssuer() },
  { put: 'order', value: signingOrder() },
  { put: 'issuer-revocation', value: revocationThere('a9') },
  {
    put: 'issuer-migration',
    value: {
      id: 'm1',
      profile: 'gpu-cloud',
      from: 'built-in',
      to: 'corp',
      stage: { kind: 'prepare' },
      excluded: [],
      by: 'operator:carol',
      sinceMs: atMs,
    },
  },
]

export const keyOf = (write: Write): string => (tableShapes[write.put].key as (value: unknown) => string)(write.value)

/** They rely on not being there yet. */
export const newRowsOf = (writes: readonly Write[]): readonly Read[] =>
  writes.map((write) => ({ row: write.put, key: keyOf(write), version: 0 }))
