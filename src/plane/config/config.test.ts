import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { resolveSettings } from '#platform/given-settings.ts'
import { Wrong } from '#platform/setting.ts'
import { parseSettingsFile } from '#platform/settings-file.ts'
import { ConfigProblem, listenWarning, planeConfig, planeEnvironment, replicaVariable } from './config.ts'
import { planeSettings } from './settings.ts'

test('nodes recover at the address they connect to, on another port, unless configured otherwise', () => {
  assert.deepEqual(planeConfig({}, {}).recoveryListen, { host: '127.0.0.1', port: 8442 })
  assert.deepEqual(planeConfig({ nodeListen: '0.0.0.0:443' }, {}).recoveryListen, { host: '0.0.0.0', port: 8442 })
  const elsewhere = planeConfig({ nodeListen: '0.0.0.0:443' }, { MUSTER_RECOVERY_LISTEN: '[::1]:9442' })
  assert.deepEqual(elsewhere.recoveryListen, { host: '::1', port: 9442 })
})

test('a plane with a name for other machines that listens for this one only is warned about', () => {
  const warningsFor = (options: Readonly<Record<string, unknown>>) => listenWarning(planeConfig(options, {}))
  assert.match(
    warningsFor({ serverName: ['192.0.2.10'] }).join(),
    /no other machine reaches it.*--node-listen 0\.0\.0\.0:8443/,
  )
  assert.deepEqual(warningsFor({}), [])
  assert.deepEqual(warningsFor({ serverName: ['192.0.2.10'], nodeListen: '0.0.0.0:8443' }), [])
  assert.deepEqual(warningsFor({ serverName: ['192.0.2.10'], nodeListen: '192.0.2.10:8443' }), [])
  assert.deepEqual(warningsFor({ serverName: ['192.0.2.10'], proxyFrom: ['127.0.0.1'] }), [])
})

test('agents are handed out from the folder that is given, else from the first of the usual ones', () => {
  assert.deepEqual(planeConfig({ agents: '/srv/agents' }, {}).handedOut.agents, ['/srv/agents'])
  assert.deepEqual(planeConfig({}, { MUSTER_AGENTS: '/srv/other' }).handedOut.agents, ['/srv/other'])
  const usual = planeConfig({ data: '/srv/data' }, {}).handedOut.agents
  assert.deepEqual([usual[0], usual.at(-1)], ['/srv/data/agents', '/usr/share/muster/agents'])
})

test('load balancers are listed one by one or in one variable, and what is none is said at start', () => {
  const listed = (options: object, env: Record<string, string> = {}): number =>
    planeConfig({ ...options }, env).proxyFrom.length
  assert.equal(listed({}), 0)
  assert.equal(listed({ proxyFrom: ['10.0.0.5', '2001:db8::/64'] }), 2)
  assert.equal(listed({}, { MUSTER_PROXY_FROM: '10.0.0.5, 10.0.1.0/24' }), 2)
  assert.throws(() => listed({ proxyFrom: ['balancer.example'] }), /--proxy-from takes an address/)
  assert.throws(() => listed({}, { MUSTER_PROXY_FROM: '0.0.0.0/0' }), /is nearly everybody/)
})

test('operators are served without TLS on this machine only, and that is said before anything is made', () => {
  for (const address of ['0.0.0.0:8440', '10.0.0.5:8440', '[::]:8440', 'muster.example.org:8440']) {
    assert.throws(() => planeConfig({ operatorListen: address }, {}), /--operator-tls/)
    assert.equal(planeConfig({ operatorListen: address, operatorTls: true }, {}).operatorTls, true)
  }
  for (const address of ['127.0.0.1:0', 'localhost:8440', '[::1]:8440'])
    assert.equal(planeConfig({ operatorListen: address }, {}).operatorTls, false)
})

test('certificate status is served on loopback, elsewhere or nowhere; certificates name the place only if configured', () => {
  assert.deepEqual(planeConfig({}, {}).statusListen, { host: '127.0.0.1', port: 8446 })
  assert.equal(planeConfig({}, {}).statusUrl, null)
  assert.equal(planeConfig({ statusListen: 'off' }, {}).statusListen, null)
  const told = planeConfig({}, { MUSTER_STATUS_LISTEN: '[::]:80', MUSTER_STATUS_URL: 'http://status.example.org/' })
  assert.deepEqual(told.statusListen, { host: '::', port: 80 })
  assert.equal(told.statusUrl, 'http://status.example.org')
  for (const statusUrl of [
    'status.example.org',
    'ftp://a',
    'http://user:secret@a',
    'http://a/?b',
    `http://${'a'.repeat(130)}`,
  ])
    assert.throws(() => planeConfig({ statusUrl }, {}), /--status-url/)
})

test('two listeners on one port are refused by the names of both options, before anything is made', () => {
  const both = (options: Record<string, string>) => () => planeConfig(options, {})
  const [a, b] = ['127.0.0.1:9443', '0.0.0.0:9443']
  assert.throws(
    both({ nodeListen: a, recoveryListen: a }),
    /--node-listen 127\.0\.0\.1:9443 and --recovery-listen 127\.0\.0\.1:9443/,
  )
  assert.throws(both({ nodeListen: b, statusListen: a }), /--node-listen .* and --status-listen /)
  // Where recovery listens by itself is taken, too.
  assert.throws(both({ nodeListen: '127.0.0.1:8442' }), /--node-listen .* and --recovery-listen /)
  assert.doesNotThrow(both({ nodeListen: '127.0.0.1:0', recoveryListen: '127.0.0.1:0', operatorListen: '127.0.0.1:0' }))
  assert.doesNotThrow(both({ nodeListen: '127.0.0.1:9443', recoveryListen: '127.0.0.2:9443' }))
})

test('a plane is set up by its file, and an option or a variable goes before it', () => {
  const file = parseSettingsFile(
    '/etc/muster/plane.toml',
    'data = "/srv/muster"\nserver_name = ["muster.example.org", "192.0.2.2"]\nnode_listen = "0.0.0.0:8443"\noperator_tls = true\n',
    planeSettings,
  )
  const config = planeConfig({ nodeListen: '192.0.2.2:443' }, { MUSTER_SERVER_NAME: 'other.example.org' }, file)
  assert.equal(config.dataFolder, '/srv/muster')
  assert.deepEqual(config.nodeListen, { host: '192.0.2.2', port: 443 })
  assert.deepEqual(config.serverNames, ['other.example.org'])
  assert.equal(config.operatorTls, true)
})

test('what contradicts itself in a file is named by its line and key', () => {
  const refused = (text: string): string => {
    const file = parseSettingsFile('/etc/muster/plane.toml', text, planeSettings)
    try {
      planeConfig({}, {}, file)
      return 'nothing'
    } catch (error) {
      return error instanceof ConfigProblem ? error.message : assert.fail(String(error))
    }
  }
  assert.equal(
    refused('operator_listen = "0.0.0.0:8440"'),
    '/etc/muster/plane.toml line 1: operator_listen 0.0.0.0:8440 can be reached from other machines: add operator_tls = true',
  )
  assert.equal(
    refused('replicas = 2'),
    '/etc/muster/plane.toml line 1: replicas needs --store postgres: the embedded store has one plane',
  )
  const address = refused('store = "postgres://u:hunter2@db/muster"')
  assert.match(address, /plane\.toml line 1: store takes sqlite or postgres and nothing else/)
  assert.doesNotMatch(address, /hunter2/)
})

test('a thread of a plane has a processor of its own, or is not started; one of several replicas starts none', () => {
  const env = { PGHOST: '/run', HOME: '/nowhere' }
  const others = availableParallelism() - 1
  const alone = planeConfig({ store: 'postgres' }, env)
  assert.deepEqual([alone.tlsThreads, alone.proofThread], [Math.min(1, others), others > 1])
  const onMain = planeConfig({ store: 'postgres', tlsThreads: '0' }, env)
  assert.deepEqual([onMain.tlsThreads, onMain.proofThread], [0, others > 0])
  const replica = planeConfig({ store: 'postgres' }, { ...env, [replicaVariable]: '1' })
  assert.deepEqual([replica.tlsThreads, replica.proofThread], [0, false])
})

test('replicas get the values of their parent in variables, and read no file', () => {
  const file = parseSettingsFile(
    '/etc/muster/plane.toml',
    'domain = "a.example"\nproxy_from = ["10.0.0.5"]',
    planeSettings,
  )
  const { values } = resolveSettings(planeSettings, { options: { operatorTls: true }, env: {}, file })
  assert.deepEqual(planeEnvironment(values), {
    MUSTER_DOMAIN: 'a.example',
    MUSTER_OPERATOR_TLS: 'true',
    MUSTER_PROXY_FROM: '10.0.0.5',
    MUSTER_CONFIG: 'off',
  })
})

test('every setting has a default that it takes', () => {
  for (const [name, { default: standard, kind, parse }] of Object.entries(planeSettings)) {
    if (standard === null) continue
    const parsed = parse(kind === 'list' ? standard.split(',') : [standard])
    assert.ok(parsed !== null && !(parsed instanceof Wrong), name)
  }
})

test('keys in Vault need its address and its roots, and nothing but the host says where that is and how to log in', () => {
  const vault = { vaultAddress: 'https://vault.example:8200/', vaultRoots: 'ca.pem' }
  const config = planeConfig(
    { ...vault, caKey: 'transit', root: 'transit:key=root', vaultLogin: 'approle:r-1@team/x' },
    {},
  )
  assert.deepEqual([config.caKeyPlace, config.rootKey, config.responderKeyPlace], ['transit', 'transit:key=root', null])
  assert.deepEqual(config.tokens.vault, {
    ...{ address: 'https://vault.example:8200', rootsFile: 'ca.pem', secretFile: null, mount: 'transit' },
    login: { kind: 'approle', roleId: 'r-1', mount: 'team/x' },
  })
  for (const option of ['caKey', 'responderKey', 'taskSignerKey'])
    assert.throws(
      () => planeConfig({ [option]: 'transit' }, {}),
      /needs the Vault: --vault-address URL --vault-roots FILE/,
    )
  assert.throws(() => planeConfig({ taskSignerKey: 'pkcs11:token=a' }, {}), /--task-signer-key needs the module/)
  assert.throws(() => planeConfig({ vaultAddress: 'https://vault.example' }, {}), /needs the roots of its server/)
  const wrong = [
    ...[{ vaultAddress: 'http://vault.example' }, { vaultAddress: 'https://a:b@vault.example' }],
    ...[{ vaultLogin: 'hvs.secret' }, { vaultLogin: 'cert:plane@../sys' }, { vaultTransit: '../sys' }],
    ...[{ root: 'transit:key=root;mount=pki' }, { root: 'transit:key=a/b' }],
  ]
  for (const one of wrong) assert.throws(() => planeConfig({ ...vault, ...one }, {}), / takes /, JSON.stringify(one))
})
