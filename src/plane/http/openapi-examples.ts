// Worked examples for the calls people make first. A test holds them against the schemas.

type Example = {
  /** What success looks like, where it is not 200. */
  readonly status?: 201
  readonly request?: object
  readonly answer?: object
}

const token = {
  id: '01KTZ4M5N6P7Q8R9S0T1V2W3X4',
  scope: 'node',
  node: 'gpu-001',
  profile: 'gpu-cloud',
  replace: false,
  state: 'unused',
  created_by: 'operator:ada',
  created_at: '2026-11-15T09:30:00.000Z',
  expires_at: '2026-11-15T10:00:00.000Z',
  used_at: null,
  used_by: null,
}

const secret = 'enroll_(43 characters)'
const root = 'fa0b6d2c7e4f1a3b5c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b'

const receipt = {
  id: '01KA2Q7Z6W3M8X9Y0Z1A2B3C4D',
  kind: 'revoke',
  node: 'gpu-001',
  epoch: 1,
  reason: 'compromised',
  by: 'operator:ada',
  decided_at: '2026-11-15T11:02:03.456Z',
  effective_at: '2026-11-15T11:02:03.471Z',
  settled_at: null,
  certificates: ['6f1d0c3b5a79e8f4021c3d5e7f9a0b1c2d3e4f50/5d0e8f1a2b3c4d5e6f708192a3b4c5d6'],
  channels_cut: 1,
  replicas: [
    { replica: 7, name: 'plane-a 4711', how: 'itself', channels_cut: 0, after_ms: 3 },
    { replica: 8, name: 'plane-b 815', how: 'acknowledged', channels_cut: 1, after_ms: 12 },
  ],
  replicas_unconfirmed: 0,
  peers: {
    expected: 5,
    confirmed: 4,
    left: 0,
    ended: [],
    stragglers: [{ node: 'gpu-007', deadline: '2026-11-16T04:00:00.000Z' }],
  },
  latency: { effective_ms: 15, last_channel_cut_ms: 12, last_peer_ms: 64, clocks: 'of the plane that decided' },
  journal: 'bWFpbjo0Mg',
}

const statement = (kind: string): string => `${kind}1.(canonical JSON).(signature)`

const evidence = {
  instance: 'Zm9ydHktdHdvLWFuZC1hLQ',
  hardware: { macs: ['aa:bb:cc:dd:ee:01'], bmc_serial: null },
  machine: null,
  agent_version: '1.0.0',
}

export const apiExamples: Readonly<Record<string, Example | undefined>> = {
  'POST /v1/nodes': {
    status: 201,
    request: { id: 'gpu-001', profile: 'gpu-cloud', macs: ['aa:bb:cc:dd:ee:01'], bmc_serial: 'SN-4711' },
  },
  'POST /v1/tokens': {
    status: 201,
    request: { node: 'gpu-001' },
    answer: {
      token,
      secret,
      join: `muster1,https://plane.example:8443,muster.local,sha256:${root},${secret}`,
      registered: true,
    },
  },
  'POST /v1/nodes/:id/revoke': { request: { reason: 'compromised' }, answer: receipt },
  'POST /v1/nodes/:id/quarantine': { request: { reason: 'two machines with one identity' }, answer: receipt },
  'POST /v1/nodes/:id/decommission': { request: { force: false }, answer: receipt },
  'POST /v1/nodes/:id/drain': { request: { done: false } },
  'POST /v1/profiles': {
    status: 201,
    request: { name: 'gpu-short', from: 'gpu-cloud', set: { 'certificate.lifetimeMs': 3_600_000 } },
  },
  'PATCH /v1/domain': { request: { set: { livenessGraceMs: 600_000 } } },
  'POST /v1/alerts/:id/ack': { request: { note: 'replacing its disk' } },
  'POST /v1/keys': { status: 201, request: { name: 'ada', role: 'operator' } },
  'POST /v1/enroll': {
    request: {
      method: 'token',
      enrollment_token: secret,
      hardware_identity: { macs: ['aa:bb:cc:dd:ee:01'], bmc_serial: null },
      hardware_facts: { cpu_cores: 64, memory_bytes: 549_755_813_888, disk_bytes: 3_840_755_982_336, arch: 'x64' },
      csr: '-----BEGIN CERTIFICATE REQUEST-----\n(PKCS#10, signed by its own key)\n-----END CERTIFICATE REQUEST-----\n',
    },
  },
  'POST /v1/nodes/:id/renew': {
    request: { csr: '-----BEGIN CERTIFICATE REQUEST-----\n(for a new key)\n-----END CERTIFICATE REQUEST-----\n' },
  },
  'POST /v1/challenge': {
    request: { nonce: 'q0J0c2o4w5t6u7i8o9p0aA', node_id: 'gpu-001' },
    answer: { challenge: statement('challenge') },
  },
  'POST /v1/recover': {
    request: {
      node_id: 'gpu-001',
      credential: { kind: 'bearer', token: 'recover_(43 characters)' },
      counter: statement('counter'),
      csr: '-----BEGIN CERTIFICATE REQUEST-----\n(for a new key)\n-----END CERTIFICATE REQUEST-----\n',
      failure: {
        class: 'cert_expired',
        code: 'CLIENT_CERT_EXPIRED',
        since: '2026-11-15T09:30:00.000Z',
        cert_not_after: '2026-11-15T09:30:00.000Z',
      },
      evidence,
      correlation: '01KTZ4M5N6P7Q8R9S0T1V2W3X5',
    },
  },
  'POST /v1/rehearse': {
    request: {
      node_id: 'gpu-001',
      credential: { kind: 'bearer', token: 'recover_(43 characters)' },
      counter: statement('counter'),
      evidence,
      disk_reserve: true,
      clock_skew_ms: 120,
    },
    answer: { outcome: 'passed', step: null, why: null },
  },
  'POST /v1/nodes/:id/confirm': { request: { persisted: true } },
}
