import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { chainedHash } from '#plane/store/journal/journal-chain.ts'
import { setUpCli } from './cli-setup.ts'

test('token create prints one join string alone on standard output, and says on standard error what it did', async (t) => {
  const { muster } = await setUpCli(t)
  const { code, out, err } = await muster('token', 'create', '--node', 'gpu-001', '--expires', '10m')
  assert.equal(code, 0)
  assert.match(
    out,
    /^muster1,https:\/\/plane\.example:8443\/marked\/\.\.,[a-z.]+,sha256:[0-9a-f]{64},enroll_[\w-]{43}\n$/,
  )
  assert.match(err, /registered gpu-001 with profile gpu-cloud\ntoken \w+ for node gpu-001, .* for 10m\n$/)
  assert.doesNotMatch(err, /enroll_/)

  const second = await muster('token', 'create', '--node', 'gpu-001')
  assert.match(second.err, /\n1 earlier token for node gpu-001 can still be used: .*token list --node gpu-001\n$/)

  const list = await muster('token', 'list')
  assert.match(list.out, /unused {2}gpu-001 {2}gpu-cloud {2}in (9m|10m)/)
  assert.doesNotMatch(list.out, /enroll_/)
  const id = /^(\w{26}) /m.exec(list.out)?.[1] ?? ''
  assert.equal((await muster('token', 'revoke', id)).out, `token ${id} revoked\n`)
})

test('a node is registered, listed, explained, drained and revoked', async (t) => {
  const { muster } = await setUpCli(t)
  const mac = '52:54:00:12:34:56'
  assert.equal(
    (await muster('node', 'enroll', 'hpc-1', '--mac', mac, '--bmc-serial', 'CN7', '--profile', 'hpc-diskless')).code,
    0,
  )
  const header = /^NAME +STATE +PROFILE +VCLUSTER +CONNECTED +CERT +SEEN +CONDITIONS\n/
  const listed = await muster('node', 'list')
  assert.match(listed.out, header)
  assert.match(listed.out, /\nhpc-1 +registered +hpc-diskless +- +no +none +never +-\n$/)
  assert.equal((await muster('node', 'list', '--state', 'active')).out, '')
  const shown = await muster('node', 'show', 'hpc-1')
  assert.match(shown.out, /^node +hpc-1\nstate +registered/)
  assert.match(shown.out, /mac 52:54:00:12:34:56\n +bmc serial CN7/)
  assert.match((await muster('node', 'drain', 'hpc-1')).out, /drained/)
  assert.equal((await muster('node', 'undrain', 'hpc-1')).code, 0)
  assert.match((await muster('node', 'quarantine', 'hpc-1', '--reason', 'odd')).out, /^node +hpc-1 quarantined/)
  assert.match((await muster('node', 'release', 'hpc-1')).out, /state +inactive/)
  assert.match(
    (await muster('node', 'revoke', 'hpc-1', '--reason', 'sold')).out,
    /^node +hpc-1 revoked by operator:the-platform-admin: sold\nreceipt/,
  )
  const again = await muster('node', 'quarantine', 'hpc-1', '--reason', 'odd')
  assert.equal(again.code, 1)
  assert.match(
    again.err,
    /^error NODE_REVOKED: .*\n(detail: .*\n)?next: .*\.\/muster node enroll hpc-1\).*\.\/muster token create --node hpc-1\n$/,
  )
})

test('several nodes are drained, quarantined and released with one command, a line each; what fails is counted', async (t) => {
  const { muster } = await setUpCli(t)
  for (const id of ['gpu-001', 'gpu-002']) await muster('node', 'enroll', id)
  const drained = await muster('node', 'drain', 'gpu-001', 'gpu-002', 'nobody')
  assert.equal(drained.code, exitCodes.partly)
  assert.match(
    drained.out,
    /^NODE +RESULT +DETAIL\ngpu-001 +registered +.*drained.*\ngpu-002 +registered .*\nnobody +failed +NODE_NOT_FOUND/,
  )
  assert.match(drained.err, /^1 of 3 failed/)
  const cut = await muster('node', 'quarantine', 'gpu-001', 'gpu-002', '--reason', 'odd')
  assert.equal(cut.code, exitCodes.ok, cut.err)
  assert.match(cut.out, /\ngpu-001 +quarantined +effective after \d+ ms +\w{26}\ngpu-002 +quarantined/)
  const again = await muster('node', 'quarantine', 'gpu-001', 'gpu-002', '--reason', 'odd', '-o', 'json')
  assert.equal(again.code, exitCodes.partly)
  const { results } = JSON.parse(again.out)
  assert.deepEqual([results[0].receipt, results[0].code], [null, 'NODE_QUARANTINED'])
  assert.match((await muster('node', 'release', 'gpu-001', 'gpu-002')).out, /\ngpu-001 +inactive.*\ngpu-002 +inactive/)
})

test('a filter with a name that does not exist is refused, and not answered with an empty list', async (t) => {
  const { muster } = await setUpCli(t)
  assert.match((await muster('node', 'list', '--profile', 'nope')).err, /^error PROFILE_NOT_FOUND/)
  for (const noun of ['token', 'receipt', 'program', 'allocation'])
    assert.match((await muster(noun, 'list', '--node', 'nobody')).err, /^error NODE_NOT_FOUND/)
  assert.match((await muster('allocation', 'list', '--vcluster', 'nope')).err, /^error VCLUSTER_NOT_FOUND/)
  assert.match((await muster('worker', 'list', '--issuer', 'nope')).err, /^error WORKER_ISSUER_NOT_FOUND/)
  assert.match(
    (await muster('task', 'list', '--type', 'reboto')).err,
    /^error REQUEST_INVALID.*\n.*did you mean reboot\?/,
  )
  await muster('node', 'enroll', 'gpu-001')
  assert.equal((await muster('token', 'list', '--node', 'gpu-001')).code, exitCodes.ok)
  assert.equal((await muster('task', 'list', '--type', 'x-of-a-host')).code, exitCodes.ok)
})

test('-o json is the answer of the API, wherever the option stands', async (t) => {
  const { muster } = await setUpCli(t)
  await muster('node', 'enroll', 'gpu-001')
  const after = JSON.parse((await muster('node', 'list', '-o', 'json')).out)
  const before = JSON.parse((await muster('-o', 'json', 'node', 'list')).out)
  assert.deepEqual(after, before)
  assert.equal(after.nodes[0].id, 'gpu-001')
  const refused = await muster('node', 'show', 'nobody', '-o', 'json')
  assert.equal(refused.out, '')
  assert.equal(JSON.parse(refused.err).error.code, 'NODE_NOT_FOUND')
})

test('exit codes distinguish not found, not allowed, refused, and a wrong command line', async (t) => {
  const { muster, musterWith, keyFile } = await setUpCli(t)
  assert.equal((await muster('node', 'show', 'nobody')).code, 3)
  const viewer = await musterWith({ env: { MUSTER_KEY_FILE: keyFile('viewer') } }, 'token', 'create', '--node', 'a')
  assert.equal(viewer.code, 4)
  assert.match(viewer.err, /^error ROLE_FORBIDDEN/)
  await muster('node', 'enroll', 'gpu-001')
  const twice = await muster('node', 'enroll', 'gpu-001')
  assert.equal(twice.code, 1)
  assert.match(twice.err, /next: .*\.\/muster node show gpu-001/)
  assert.equal((await muster('node', 'revoke', 'gpu-001')).code, 2)
  assert.equal((await muster('token', 'create', '--expires', 'soon')).code, 2)
  assert.equal((await muster('nodes')).code, 2)
  assert.equal((await musterWith({ env: { MUSTER_DATA: '/nowhere', MUSTER_KEY_FILE: '' } }, 'node', 'list')).code, 69)
})

test('a file that is not an operator key is never sent anywhere', async (t) => {
  const { musterWith, folder } = await setUpCli(t)
  const file = path.join(folder, 'something')
  fs.writeFileSync(file, 'a private thing\n')
  const said = await musterWith({ env: { MUSTER_KEY_FILE: file } }, 'node', 'list')
  assert.equal(said.code, 4)
  assert.match(said.err, /does not hold an operator key/)
  assert.doesNotMatch(said.err, /private thing/)
})

test('a batch reports every line, goes on after a failure, and can be repeated', async (t) => {
  const { muster, musterWith } = await setUpCli(t)
  const rows = Array.from({ length: 30 }, (_, at) => `n-${at},hpc-diskless,52:54:00:00:00:${String(at + 10)},S${at}`)
  const csv = ['id,profile,mac,bmc_serial', ...rows, 'other,,52:54:00:00:00:10,', 'bad id,,,', 'x,nope,,'].join('\n')
  const first = await musterWith({ input: csv }, 'node', 'enroll', '--batch', '-')
  assert.equal(first.code, 6)
  assert.match(first.err, /33 lines: 30 registered, 0 already there, 3 failed/)
  assert.match(first.out, /^32 +other +failed +HARDWARE_IDENTITY_CONFLICT/m)
  assert.match(first.out, /^34 +x +failed +PROFILE_NOT_FOUND/m)
  const good = csv.split('\n').slice(0, 31).join('\n')
  const again = await musterWith({ input: good }, 'node', 'enroll', '--batch', '-')
  assert.equal(again.code, 0)
  assert.match(again.err, /30 lines: 0 registered, 30 already there, 0 failed/)
  assert.equal((await muster('node', 'list', '-o', 'name')).out.trim().split('\n').length, 30)
})

test('profiles and the domain are changed in the words they are shown in', async (t) => {
  const { muster } = await setUpCli(t)
  const made = await muster('profile', 'create', 'short', '--from', 'gpu-cloud', 'certificate.lifetimeMs=1h')
  assert.match(made.out, /^certificate\.lifetimeMs +1h$/m)
  assert.match((await muster('profile', 'set', 'short', 'certificate.renewTo=0.6')).out, /renewTo +0\.6$/m)
  assert.match((await muster('profile', 'list')).out, /^short +token +1h +file/m)
  const exists = await muster('profile', 'create', 'short')
  assert.match(exists.err, /^error PROFILE_EXISTS: .*\nnext: Change it: \.\/muster profile set short KEY=VALUE/m)
  assert.match((await muster('domain', 'set', 'livenessGraceMs=10m')).out, /^livenessGraceMs +10m$/m)
  assert.match((await muster('domain', 'show')).out, /^livenessGraceMs +10m$/m)
})

test('a key is shown once, alone on standard output, and works until it is revoked', async (t) => {
  const { muster, musterWith, folder } = await setUpCli(t)
  const { out, err } = await muster('key', 'create', 'alice', '--role', 'viewer')
  assert.match(out, /^muster_key_[\w-]{43}\n$/)
  assert.doesNotMatch(err, /muster_key_/)
  const file = path.join(folder, 'alice.key')
  fs.writeFileSync(file, out)
  const asAlice = { env: { MUSTER_KEY_FILE: file } }
  assert.equal((await musterWith(asAlice, 'node', 'list')).code, 0)
  const id = /^(\w+) +alice/m.exec((await muster('key', 'list')).out)?.[1] ?? ''
  assert.equal((await muster('key', 'revoke', id)).code, 0)
  assert.equal((await musterWith(asAlice, 'node', 'list')).code, 4)
})

test('an export holds the exact bytes: every hash follows from the one before', async (t) => {
  const { muster } = await setUpCli(t)
  for (let at = 0; at < 5; at++) await muster('node', 'enroll', `n-${at}`)
  const { out, err } = await muster('journal', 'export')
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { hash: string; bytes: string; cursor: string })
  assert.equal(err, `${lines.length} entries\n`)
  for (let at = 1; at < lines.length; at++) {
    const hash = Buffer.from(chainedHash(Buffer.from(lines[at - 1]!.hash, 'hex'), lines[at]!.bytes)).toString('hex')
    assert.equal(hash, lines[at]!.hash)
  }
  const rest = await muster('journal', 'export', '--after', lines[2]!.cursor)
  assert.equal(rest.out, out.split('\n').slice(3).join('\n'))
})

test('the journal is listed, filtered and verified', async (t) => {
  const { muster } = await setUpCli(t)
  await muster('node', 'enroll', 'gpu-001')
  await muster('token', 'create', '--node', 'gpu-001')
  const { out } = await muster('journal', 'list', '--node', 'gpu-001')
  assert.match(out, /^ENTRY +TIME +TYPE +NODE +ACTOR +DETAILS\n/)
  assert.match(out, /^\d+ +\S+Z +node\.registered +gpu-001 +operator:the-platform-admin +epoch=0 /m)
  assert.match((await muster('journal', 'list', '--last', '1')).out, /enrollment_token\.created/)
  assert.equal((await muster('journal', 'list', '--last', '0')).code, 2)
  assert.match((await muster('journal', 'verify')).out, /^chain intact, \d+ entries\n$/)
})

test('a filter of the journal that nothing ever matched is an error, and one that matches nothing now is not', async (t) => {
  const { muster } = await setUpCli(t)
  await muster('node', 'enroll', 'gpu-001')
  const refused = async (filter: readonly string[], code: string): Promise<void> => {
    const said = await muster('journal', 'list', ...filter)
    assert.equal(said.code, 3, filter.join(' '))
    assert.match(said.err, new RegExp(`error ${code}`))
  }
  await refused(['--node', 'nope'], 'NODE_NOT_FOUND')
  for (const actor of ['nobody', 'operator:nobody', 'node:nope']) await refused(['--actor', actor], 'ACTOR_NOT_FOUND')
  await refused(['--correlation', 'zz'], 'CORRELATION_NOT_FOUND')
  const quiet = [
    ['--node', 'gpu-001', '--type', 'node.purged'],
    ...['gpu-001', 'liveness', 'system:alerts', 'anonymous', 'east.worker-1'].map((actor) => ['--actor', actor]),
    ['--correlation', 'zz', '--type', 'node.purged'],
  ]
  for (const filter of quiet) {
    const said = await muster('journal', 'list', ...filter)
    assert.deepEqual([said.code, said.out], [0, ''], said.err)
    assert.match(said.err, /no entries match/)
  }
})

test('the journal is listed by time and by actor', async (t) => {
  const { muster, musterWith, keyFile, clock } = await setUpCli(t)
  await muster('node', 'enroll', 'gpu-001')
  clock.advance(2 * 3_600_000)
  const between = new Date(clock.nowMs() - 60_000).toISOString()
  await musterWith({ env: { MUSTER_KEY_FILE: keyFile('operator') } }, 'node', 'enroll', 'gpu-002')
  const listed = async (...words: string[]): Promise<string> => (await muster('journal', 'list', ...words)).out
  const since = await listed('--since', '1h', '--columns', 'type,node', '--no-headers')
  assert.match(since, /node\.registered +gpu-002/)
  assert.doesNotMatch(since, /gpu-001/)
  const until = await listed('--until', between, '--type', 'node.registered')
  assert.match(until, /gpu-001/)
  assert.doesNotMatch(until, /gpu-002/)
  const actor = await listed('--actor', 'the-operator', '--type', 'node.registered')
  assert.match(actor, /gpu-002/)
  assert.doesNotMatch(actor, /gpu-001/)
  assert.equal((await muster('journal', 'list', '--since', 'yesterday')).code, 2)
  assert.match((await muster('journal', 'list', '--actor', 'the-viewer')).err, /^no entries match/)
})

test('a token is withdrawn by the beginning of its id, if no other begins so', async (t) => {
  const { muster } = await setUpCli(t)
  await muster('token', 'create', '--node', 'gpu-001')
  const id = (await muster('token', 'list', '-o', 'name')).out.trim()
  await muster('token', 'create', '--node', 'gpu-002')
  const vague = await muster('token', 'revoke', id.slice(0, 4))
  assert.equal(vague.code, 2)
  assert.match(vague.err, /2 ids begin with \w{4}: /)
  assert.equal((await muster('token', 'revoke', id.slice(0, 20))).out, `token ${id} revoked\n`)
  assert.match((await muster('token', 'revoke', '0000')).err, /TOKEN_NOT_FOUND/)
})

test('views have one spelling beside the old ones, and the old query is still taken', async (t) => {
  const { muster, call } = await setUpCli(t)
  await muster('node', 'enroll', 'gpu-001')
  for (const query of ['state=registered', 'membership=registered']) {
    const [node] = (await call('viewer', 'GET', `/v1/nodes?${query}`)).body.nodes
    assert.deepEqual([node.state, node.membership, node.tags], ['registered', 'registered', []])
  }
  assert.equal((await call('viewer', 'GET', '/v1/nodes?state=active&membership=active')).status, 400)
  const ca = (await call('viewer', 'GET', '/v1/ca')).body
  assert.equal(ca.root, `sha256:${ca.root_fingerprint}`)
  for (const one of ca.authorities) assert.equal(one.fingerprint, `sha256:${one.sha256}`)
  const [first] = (await call('viewer', 'GET', '/v1/journal?limit=1')).body.entries
  assert.equal(first.at, new Date(first.entry.atMs).toISOString())
})

test('the authority is shown and rotated, and its roots are printed as PEM', async (t) => {
  const { muster } = await setUpCli(t)
  assert.match((await muster('ca', 'show')).out, /^root +sha256:[0-9a-f]{64}/m)
  assert.match((await muster('ca', 'rotate')).out, /issuing/)
  assert.match((await muster('ca', 'bundle')).out, /^-----BEGIN CERTIFICATE-----\n[^]*-----END CERTIFICATE-----\n$/)
  assert.match(
    (await muster('ca', 'bundle', '--join')).out,
    /^muster1,https:\/\/plane\.example:8443\/marked\/\.\.,.*,-\n$/,
  )
  assert.match((await muster('ca', 'request')).out, /^-----BEGIN CERTIFICATE REQUEST-----\n/)
})

test('names that only the plane knows are completed', async (t) => {
  const { muster } = await setUpCli(t)
  for (const id of ['gpu-001', 'gpu-002', 'hpc-1']) await muster('node', 'enroll', id)
  const { out } = await muster('complete-words', 'node', 'show', 'gpu-')
  assert.equal(out, 'gpu-001\tregistered, gpu-cloud\ngpu-002\tregistered, gpu-cloud\n')
  assert.match((await muster('complete-words', 'profile', 'show', 'h')).out, /^high-assurance\t.*\nhpc-diskless\t.*\n$/)
})
