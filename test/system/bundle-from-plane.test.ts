// A bundle whose machine fetches the agent from the plane, with nothing but a shell, curl and the tools beside it.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { parse as parseYaml } from 'yaml'
import { parseJoinString } from '#wire/core/join-string.ts'
import { downloadLimits } from '#plane/files/downloads.ts'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { holdDownload, putAgent, putLargeAgent, standIn } from '../process/fetch-agent.ts'
import { installed } from '../process/install-bundle.ts'
import { rawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const run = promisify(execFile)
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-agents-'))
after(() => fs.rmSync(folder, { recursive: true, force: true }))
const here = process.arch === 'arm64' ? 'arm64' : 'x64'
const other = here === 'arm64' ? 'x64' : 'arm64'
const executable = standIn('0.5.0')
const agent = putAgent(folder, `muster-linux-${here}.gz`, executable)
const large = putLargeAgent(folder, `muster-linux-${other}.gz`)
const plane = sharedPlane({ args: ['--agents', folder] })

const bundle = async (id: string, ...words: string[]): Promise<string> => {
  const isRead = async () => (await plane().api('GET', '/v1/agents')).body.reading === false || null
  await eventually('the agents to be read', isRead)
  const made = await plane().muster('node', 'bundle', id, '--this-machine', ...words)
  assert.equal(made.code, 0, made.stderr)
  return made.stdout
}

const joinIn = (root: string): string => fs.readFileSync(path.join(root, 'etc/muster/join'), 'utf8').trim()
const needsCurl = (t: TestContext): boolean => withPeer(t, 'curl') !== null

test('the script fetches the agent of its architecture from the plane and leaves nothing else behind, also the second time', async (t) => {
  if (!needsCurl(t)) return
  const script = await bundle('gpu-p1', '--format', 'script')
  const first = await installed(t, script)
  assert.equal(first.code, 0, first.stderr)
  const { root } = first
  const file = path.join(root, 'usr/bin/muster')
  assert.ok(fs.readFileSync(file).equals(executable))
  assert.equal(fs.statSync(file).mode & 0o777, 0o755)
  assert.deepEqual(fs.readdirSync(path.join(root, 'usr/bin')), ['muster'])
  assert.deepEqual(fs.readdirSync(path.join(root, 'etc/muster')).sort(), ['agent.digests', 'join'])
  const secret = parseJoinString(joinIn(root))?.secret ?? ''
  assert.equal((await rawNode(await plane().target()).enrollByToken(secret)).status, 200, 'the token is still good')
  const second = await installed(t, script, { root })
  assert.equal(second.code, 0, `what is there needs no token: ${second.stderr}`)
  const elsewhere = await installed(t, script)
  assert.equal(elsewhere.code, 77)
  assert.match(elsewhere.stderr, /used or revoked, or has expired.*muster node bundle gpu-p1/)
  assert.deepEqual(fs.readdirSync(path.join(elsewhere.root, 'usr/bin')), [])
})

test('what does not have the digest is neither unpacked nor installed', async (t) => {
  if (!needsCurl(t)) return
  const script = (await bundle('gpu-p2', '--format', 'script')).replace(
    `sha256=${agent.digest}`,
    `sha256=${large.digest}`,
  )
  const { root, code, stderr } = await installed(t, script)
  assert.equal(code, 76, stderr)
  assert.match(stderr, /another digest/)
  assert.deepEqual(fs.readdirSync(path.join(root, 'usr/bin')), [])
  assert.equal(fs.existsSync(path.join(root, 'etc/systemd')), false)
})

test('a machine whose plane has another root fetches nothing, also where its system trusts that root', async (t) => {
  const unshare = withPeer(t, 'unshare')
  if (unshare === null || !needsCurl(t)) return
  const { body } = await plane().api('GET', '/v1/ca/bundle')
  const foreign = await run('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    '/dev/null',
    '-subj',
    '/CN=foreign',
    '-days',
    '1',
  ])
  const script = (await bundle('gpu-p3', '--format', 'script'))
    .replace(String(body.roots[0]).trim(), foreign.stdout.trim())
    .replace('"$failed" -le 8', '"$failed" -le 0')
  const trusted = tempFolder(t)
  fs.writeFileSync(path.join(trusted, 'plane.pem'), String(body.roots[0]))
  await run('openssl', ['rehash', trusted])
  const asSystem = `mount --bind '${trusted}' /etc/ssl/certs && exec sh "$1"`
  const { root, code, stderr } = await installed(t, script, { command: [unshare, '-m', 'sh', '-ec', asSystem, 'sh'] })
  assert.equal(code, 69, stderr)
  assert.match(stderr, /certificate/)
  assert.deepEqual(fs.readdirSync(path.join(root, 'usr/bin')), [])
})

test('a busy plane is asked again after the time it gives', async (t) => {
  if (!needsCurl(t)) return
  const target = await plane().target()
  const held: Awaited<ReturnType<typeof holdDownload>>[] = []
  const perToken = downloadLimits.atOncePerCaller
  for (let at = 0; at < downloadLimits.atOnce / 2 / perToken; at++) {
    const { secret: token } = (await plane().api('POST', '/v1/tokens', { node: `gpu-held${at}` })).body
    for (let each = 0; each < perToken; each++) held.push(await holdDownload(target, large.digest, { token }))
  }
  assert.ok(held.every(({ status }) => status === 200))
  const script = await bundle('gpu-p4', '--format', 'script')
  const letGo = (said: string): void => {
    if (said.includes('fetched again in')) for (const one of held.splice(0)) one.hangUp()
  }
  const { root, code, stderr } = await installed(t, script, { onSaid: letGo })
  assert.equal(code, 0, stderr)
  assert.match(stderr, /fetched again in [1-9]\d* s/)
  assert.ok(fs.existsSync(path.join(root, 'usr/bin/muster')))
})

test('where /usr cannot be written the agent goes to /opt, and its service starts it there', async (t) => {
  const unshare = withPeer(t, 'unshare')
  if (unshare === null || !needsCurl(t)) return
  const readOnly = 'mkdir "$2/usr" && mount -t tmpfs -o ro none "$2/usr" && exec sh "$1"'
  const script = await bundle('gpu-p5', '--format', 'script')
  const { root, code, stderr } = await installed(t, script, { command: [unshare, '-m', 'sh', '-ec', readOnly, 'sh'] })
  assert.equal(code, 0, stderr)
  assert.ok(fs.readFileSync(path.join(root, 'opt/muster/bin/muster')).equals(executable))
  assert.equal(fs.statSync(path.join(root, 'opt/muster')).mode & 0o777, 0o755)
  const unit = fs.readFileSync(path.join(root, 'etc/systemd/system/muster-agent.service'), 'utf8')
  assert.match(unit, /^ExecStart=\/opt\/muster\/bin\/muster agent run/m)
  assert.ok(!unit.includes('/usr/bin/muster'))
  assert.ok(fs.existsSync(path.join(root, 'etc/sysusers.d/muster-agent.conf')))
})

test('user data for cloud-init can be read line by line, is taken by its schema, and fits the limit of clouds', async (t) => {
  const userData = await bundle('gpu-p6', '--format', 'cloud-init')
  const lines = userData.split('\n')
  assert.ok(Math.max(...lines.map((line) => line.length)) < 400, 'no line is longer than a sentence')
  assert.ok(userData.length < 16_384, `${userData.length} bytes`)
  const { write_files: files } = parseYaml(userData) as { write_files: { path: string; content: string }[] }
  const script = files.find(({ path: place }) => place === '/var/lib/muster-install.sh')?.content ?? ''
  assert.match(script, /-----BEGIN CERTIFICATE-----/)
  assert.ok(script.includes(agent.digest) && script.includes(large.digest))
  assert.equal(script.split('enroll_').length, 2, 'the token is there once')
  const hosts = [...script.matchAll(/https:\/\/[^/'",]+/g)].map(([url]) => url)
  assert.deepEqual([...new Set(hosts)], [new URL(plane().nodeUrl).origin], 'one destination')
  const program = withPeer(t, 'cloud-init')
  if (program === null) return
  const file = path.join(tempFolder(t), 'user-data')
  fs.writeFileSync(file, userData)
  assert.match((await run(program, ['schema', '--config-file', file])).stdout, /Valid/i)
})

test('a node that joins by its hardware has no token to fetch an agent with, and the command says so', async () => {
  const { muster } = plane()
  await muster('node', 'enroll', 'hpc-p1', '--profile', 'hpc-diskless', '--mac', '02:4d:55:00:b2:01')
  const asked = ['node', 'bundle', 'hpc-p1', '--this-machine', '--format', 'script']
  const refused = await muster(...asked, '--agent', 'plane')
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /joins by its hardware, so it has no token.*\n.*--agent image/)
  const made = await muster(...asked)
  assert.equal(made.code, 0, made.stderr)
  assert.ok(!made.stdout.includes('curl'))
  assert.match(made.stderr, /has to be in the image/)
})

test('operators see which agents machines get', async () => {
  const shown = await plane().muster('domain', 'agents')
  assert.equal(shown.code, 0, shown.stderr)
  const row = new RegExp(`muster-linux-${here}\\.gz +${here} +new +0\\.0 MiB +sha256:${agent.digest}`)
  assert.match(shown.stdout, row)
})
