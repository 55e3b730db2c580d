// A process to be killed: swaps credentials without a pause. `node save-credentials-forever.ts FOLDER`

import { fileCredentialStore } from '#agent/state/credential-store.ts'

const store = fileCredentialStore(process.argv[2] ?? '')
for (let serial = 1; ; serial++) {
  const keyPem = `key ${serial} `.repeat(5000)
  store.save({
    identity: {
      source: 'plane',
      nodeId: 'gpu-001',
      domain: 'example.test',
      epoch: 1,
      profile: { name: 'x', key_storage: 'file', key_types: [], lifetime_ms: 1, renew_from: 0.5, renew_to: 0.6 },
      endpoints: { id: 'r', revision: 1, runtime: ['https://a'], stream: ['wss://a'] },
      roots: [],
      trustRevision: 0,
      withdrawnIssuers: [],
      issuerRoots: { revision: 0, roots: [] },
      graceMs: 1,
      understands: [],
      marked: false,
      origin: { url: 'https://a', rootFingerprint: 'ab', usedSecretHash: null },
      current: {
        keyPem,
        chainPem: `certificate of ${keyPem}`,
        serial: String(serial),
        rootPem: null,
        proven: false,
        issuedAtMs: 0,
        notAfterMs: 1,
      },
      previous: null,
      counter: null,
      recovery: null,
      clockToleranceMs: 300_000,
    },
    request: null,
  })
  process.stdout.write('.')
}
