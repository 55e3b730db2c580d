// The profiles that every new domain has: data that operators may copy and change (`muster profile create`).

import { defaultProbeSilenceMs, keyTypes, signedHere, type KeyType, type Profile } from './profile.ts'
import { noWireguard } from './wireguard.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const muster = { o: '{domain}', ou: 'nodes' }
const every: readonly KeyType[] = keyTypes

export const shippedProfiles: readonly Profile[] = [
  {
    name: 'gpu-cloud',
    description: 'GPU hosts with disks: a token bound to the node, a key in a file',
    join: { allOf: ['token'], tokenScope: 'node', tokenTtlMs: 30 * minute },
    certificate: {
      lifetimeMs: day,
      ...signedHere,
      renewFrom: 1 / 2,
      renewTo: 2 / 3,
      keyTypes: every,
      subject: { cn: 'node-{id}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'file',
    onActiveConflict: 'prove',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'certificate', people: 0 },
    recovery: { mode: 'auto', limit: 3, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'keep-live',
    wireguard: noWireguard,
    outputs: [],
    deletedAtMs: null,
  },
  {
    name: 'hpc-diskless',
    description: 'Diskless nodes of a trusted machine room: hardware identity, a key in memory',
    join: { allOf: ['hardware'], tokenScope: 'node', tokenTtlMs: 15 * minute },
    certificate: {
      lifetimeMs: 3 * day,
      ...signedHere,
      renewFrom: 0.6,
      renewTo: 2 / 3,
      keyTypes: every,
      subject: { cn: 'pact-service-agent/{id}@{domain}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'memory',
    onActiveConflict: 'probe',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'join', people: 0 },
    recovery: { mode: 'deny', limit: 0, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'keep-live',
    wireguard: noWireguard,
    outputs: [],
    deletedAtMs: null,
  },
  {
    name: 'mesh-paas',
    description: 'Hosts of a platform mesh: a token of the domain, an operator approves a return',
    join: { allOf: ['token'], tokenScope: 'domain', tokenTtlMs: hour },
    certificate: {
      lifetimeMs: 90 * day,
      ...signedHere,
      renewFrom: 0.6,
      renewTo: 2 / 3,
      keyTypes: every,
      subject: { cn: 'node-{id}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'file',
    onActiveConflict: 'prove',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'approve', people: 1 },
    recovery: { mode: 'approve', limit: 3, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'keep-live',
    wireguard: { ...noWireguard, mode: 'offered' },
    outputs: [],
    deletedAtMs: null,
  },
  {
    name: 'high-assurance',
    description:
      'Token and TPM, a key the TPM holds, two people approve a return (not usable yet: no agent uses a TPM)',
    join: { allOf: ['token', 'tpm'], tokenScope: 'node', tokenTtlMs: 15 * minute },
    certificate: {
      lifetimeMs: day,
      ...signedHere,
      renewFrom: 0.45,
      renewTo: 1 / 2,
      keyTypes: ['p256', 'p384'],
      subject: { cn: 'node-{id}', ...muster },
      uriSan: true,
      aiaUrl: null,
      cdpUrl: null,
    },
    keyStorage: 'tpm',
    onActiveConflict: 'prove',
    probeSilenceMs: defaultProbeSilenceMs,
    comeback: { by: 'approve', people: 2 },
    recovery: { mode: 'approve', limit: 3, windowMs: day, rehearseEveryMs: day },
    onDuplicate: 'fence',
    wireguard: noWireguard,
    outputs: [],
    deletedAtMs: null,
  },
]
