import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatJoinString, type JoinString } from '#wire/core/join-string.ts'
import { parseSettingsFile } from '#platform/settings-file.ts'
import { agentConfig, parseJoinFile, type AgentConfig } from './config.ts'
import { agentSettings, type AgentOptions } from './settings.ts'

const join: JoinString = {
  url: 'https://plane.example.test:8443',
  domain: 'example.test',
  rootFingerprint: 'ab'.repeat(32),
  secret: `enroll_${'x'.repeat(43)}`,
  marked: false,
}
const byHardware: JoinString = { ...join, secret: null }

const reading =
  (files: Record<string, string>) =>
  (place: string): Promise<string | null> =>
    Promise.resolve(files[place] ?? null)

const parse = (options: AgentOptions, env: Record<string, string> = {}, files: Record<string, string> = {}) =>
  agentConfig(options, env, reading(files))

const config = async (...given: Parameters<typeof parse>): Promise<AgentConfig> => {
  const parsed = await parse(...given)
  assert.equal(parsed.kind, 'config')
  return parsed.kind === 'config' ? parsed.config : assert.fail()
}

test('without options the agent looks where the packages put things', async () => {
  assert.deepEqual(await config({}), {
    stateFolder: '/var/lib/muster-agent',
    join: { kind: 'file', path: '/etc/muster/join' },
    joinMethod: 'token',
    keyType: 'p256',
    keyStorage: 'file',
    hardwareFile: null,
    nodeId: null,
    recovery: 'key',
    bootstrap: null,
    metricsListen: null,
    reportEveryMs: 60_000,
    rehearseEveryMs: null,
    wireguard: null,
    publish: null,
    agentToml: null,
    helperSocket: null,
    pinnedRoot: null,
    logLevel: 'info',
    logFormat: 'auto',
  })
})

test('a join string on standard input is taken at once', async () => {
  const { join: source } = await config({ joinFile: '-' }, {}, { '-': `${formatJoinString(join)}\n` })
  assert.deepEqual(source, { kind: 'given', join, envFile: null })
})

test('--join-file goes before MUSTER_JOIN, and that before the default file', async () => {
  const env = { MUSTER_JOIN: formatJoinString(join) }
  assert.deepEqual((await config({ joinFile: '/run/join' }, env)).join, { kind: 'file', path: '/run/join' })
  assert.deepEqual((await config({}, env)).join, { kind: 'given', join, envFile: null })
})

test('the environment file of a bundle is a join file, too, and can be named as the place that MUSTER_JOIN came from', async () => {
  const bundle = `# Muster\nMUSTER_NODE_ID=gpu-001\nMUSTER_JOIN=${formatJoinString(byHardware)}\n`
  const { joinMethod, join: source } = await config({ joinFile: '/run/gpu.env' }, {}, { '/run/gpu.env': bundle })
  assert.deepEqual([joinMethod, source], ['hardware', { kind: 'file', path: '/run/gpu.env' }])
  assert.deepEqual(parseJoinFile(bundle), byHardware)
  assert.deepEqual(parseJoinFile(`${formatJoinString(join)}\n`), join)
  assert.equal(parseJoinFile(`export MUSTER_JOIN=${formatJoinString(join)}\n`), null)
  const env = { MUSTER_JOIN: formatJoinString(join), MUSTER_JOIN_ENV_FILE: '/run/gpu.env' }
  assert.deepEqual((await config({}, env)).join, { kind: 'given', join, envFile: '/run/gpu.env' })
})

test('a join string without a secret means hardware, with the key in memory', async () => {
  const fromFile = await config({}, {}, { '/etc/muster/join': formatJoinString(byHardware) })
  assert.equal(fromFile.joinMethod, 'hardware')
  assert.equal(fromFile.keyStorage, 'memory')
  assert.equal((await config({ keyStorage: 'file' }, { MUSTER_JOIN: formatJoinString(byHardware) })).keyStorage, 'file')
})

test('a join file that is gone is no mistake: it is deleted after use', async () => {
  assert.equal((await config({ joinFile: '/run/join' })).joinMethod, 'token')
})

test('what is wrong is named, and a secret is never repeated', async () => {
  const wrong: [AgentOptions, Record<string, string>, RegExp][] = [
    [{ joinFile: '-' }, {}, /standard input/],
    [{}, { MUSTER_JOIN: `${formatJoinString(join)},more` }, /MUSTER_JOIN/],
    [{ keyType: 'rsa' }, {}, /--key-type/],
    [{ keyStorage: 'tpm' }, {}, /--key-storage/],
    [{ joinMethod: 'svid' }, {}, /--join-method/],
    [{ nodeId: 'GPU 1' }, {}, /--node-id/],
    [{ logLevel: 'loud' }, {}, /--log-level/],
    [{ log: 'xml' }, {}, /--log takes/],
    [{ recovery: 'hope' }, {}, /--recovery/],
    [{ recovery: 'key', keyStorage: 'memory' }, {}, /--recovery/],
    [{ staticCertificate: '/x' }, {}, /--static-key/],
    [{ metricsListen: '0.0.0.0:9464' }, {}, /--metrics-listen/],
    [{ metricsListen: 'metrics.example.test:9464' }, {}, /--metrics-listen/],
    [{ reportEvery: '49ms' }, {}, /--report-every/],
    [{}, { MUSTER_REHEARSE_EVERY: '25d' }, /--rehearse-every/],
  ]
  for (const [options, env, shape] of wrong) {
    const parsed = await parse(options, env)
    assert.equal(parsed.kind, 'invalid')
    assert.match(parsed.kind === 'invalid' ? parsed.why : '', shape)
    assert.doesNotMatch(JSON.stringify(parsed), /enroll_/)
  }
})

test('systemd says where the state folder is; an option or our own variable goes first', async () => {
  assert.equal((await config({}, { STATE_DIRECTORY: '/var/lib/x' })).stateFolder, '/var/lib/x')
  assert.equal((await config({}, { STATE_DIRECTORY: '/var/lib/x', MUSTER_AGENT_STATE: '/y' })).stateFolder, '/y')
  assert.equal((await config({ state: '/z' }, { MUSTER_AGENT_STATE: '/y' })).stateFolder, '/z')
})

test('recovery, bootstrap certificate, metrics and rhythms come from options or from the environment', async () => {
  const given = await config(
    { recovery: 'bearer', staticCertificate: '/c', staticKey: '/k', metricsListen: '[::1]:9464' },
    { MUSTER_REPORT_EVERY: '5s', MUSTER_REHEARSE_EVERY: '1h' },
  )
  assert.equal(given.recovery, 'bearer')
  assert.deepEqual(given.bootstrap, { certificateFile: '/c', keyFile: '/k' })
  assert.deepEqual(given.metricsListen, { host: '::1', port: 9464 })
  assert.equal(given.reportEveryMs, 5_000)
  assert.equal(given.rehearseEveryMs, 3_600_000)
})

test('with keys in memory there is no recovery key either', async () => {
  assert.equal((await config({ keyStorage: 'memory' })).recovery, 'none')
})

test('an agent built for one root takes no join string of another', async () => {
  const env = { MUSTER_JOIN: formatJoinString(join) }
  const other = await agentConfig({}, env, reading({}), 'cd'.repeat(32))
  assert.match(other.kind === 'invalid' ? other.why : '', /another root/)
  const same = await agentConfig({}, env, reading({}), join.rootFingerprint)
  assert.equal(same.kind === 'config' ? same.config.pinnedRoot : null, join.rootFingerprint)
})

test('an agent is set up by its file, after options, variables and a join string in MUSTER_JOIN', async () => {
  const text =
    'state = "/srv/agent"\njoin_file = "join"\nreport_every = "5m"\nkey_type = "p384"\nwireguard_endpoint = "192.0.2.1"\nwireguard = "wg0"\n'
  const file = parseSettingsFile('/etc/muster/agent-run.toml', text, agentSettings)
  const filed = async (options: AgentOptions, env: Record<string, string>) => {
    const parsed = await agentConfig(options, env, reading({}), null, file)
    return parsed.kind === 'config' ? parsed.config : assert.fail(parsed.why)
  }
  const found = await filed({ keyType: 'ed25519' }, { MUSTER_REPORT_EVERY: '2m', STATE_DIRECTORY: '/var/lib/x' })
  assert.equal(found.stateFolder, '/srv/agent')
  assert.deepEqual(found.join, { kind: 'file', path: '/etc/muster/join' })
  assert.equal(found.keyType, 'ed25519')
  assert.equal(found.reportEveryMs, 120_000)
  assert.equal(found.wireguard?.endpoint?.ipv4, '192.0.2.1')
  assert.deepEqual((await filed({}, { MUSTER_JOIN: formatJoinString(join) })).join.kind, 'given')
})

test('the name in the environment file of a bundle is no name to ask for', async () => {
  assert.equal((await config({}, { MUSTER_NODE_ID: 'gpu-001' })).nodeId, null)
})
