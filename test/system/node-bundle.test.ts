// Bootstrap bundles: what provisioning is handed, tried as provisioning would.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import fc from 'fast-check'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parse as parseYaml } from 'yaml'
import { cloudInit, faultOfBootstrap, type AgentSource } from '#cli/node/bootstrap.ts'
import { firmwareProfiles } from '#cli/node/firmware.ts'
import { installScript } from '#cli/node/install-script.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { documentedBlock } from '../peers/documented-block.ts'
import { withPeer } from '../peers/peer.ts'
import { installed } from '../process/install-bundle.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const run = promisify(execFile)
const plane = sharedPlane()
const join = `muster1,https://plane.example:8443,lab.example,sha256:${'a'.repeat(64)},enroll_${'s'.repeat(43)}`
const service = { unit: "[Unit]\nDescription=it's a unit\n", sysusers: 'u muster-agent -\n', journald: '[Journal]\n' }

test('an env bundle holds the name and a join string that works once, readable by its owner only', async (t) => {
  const { muster } = plane()
  const file = path.join(tempFolder(t), 'gpu-b1.env')
  const made = await muster('node', 'bundle', 'gpu-b1', '--this-machine', '--format', 'env', '--out', file)
  assert.equal(made.code, 0, made.stderr)
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  const { stdout } = await run('sh', ['-c', '. "$0"; printf "%s %s" "$MUSTER_NODE_ID" "$MUSTER_JOIN"', file])
  const [id, joined] = stdout.split(' ')
  assert.equal(id, 'gpu-b1')
  assert.notEqual(parseJoinString(joined ?? ''), null)
  const again = await muster('node', 'bundle', 'gpu-b1', '--this-machine', '--format', 'env', '--out', file)
  assert.equal(again.code, 2)
  assert.match(again.stderr, /is there already/)
})

test('a plane that is called localhost makes no bundle for another machine, and says so with a token', async () => {
  const { muster, api } = plane()
  const refused = await muster('node', 'bundle', 'gpu-b9', '--format', 'env')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /JOIN_ADDRESS_LOCAL.*\n.*--node-listen 0\.0\.0\.0:\d+ --server-name NAME/)
  assert.equal((await api('GET', '/v1/nodes/gpu-b9')).status, 404)
  for (const words of [
    ['token', 'create', '--node', 'gpu-b9'],
    ['domain', 'join-string'],
  ]) {
    const warned = await muster(...words)
    assert.equal(warned.code, 0, warned.stderr)
    assert.match(warned.stderr, /warning: https:\/\/localhost:\d+ means this machine itself/)
  }
})

test('a node that joins by its hardware gets a bundle without a secret, which is counted under the name in it', async () => {
  const { muster, api } = plane()
  const args = ['--this-machine', '--format', 'env', '--profile', 'hpc-diskless']
  const unknown = await muster('node', 'bundle', 'hpc-b1', ...args)
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /node enroll hpc-b1 --profile hpc-diskless --mac MAC/)
  await muster('node', 'enroll', 'hpc-b1', '--profile', 'hpc-diskless', '--mac', '02:4d:55:00:b1:01')
  const made = await muster('node', 'bundle', 'hpc-b1', ...args)
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /Holds no secret/)
  const join = parseJoinString(/MUSTER_JOIN=(.*)/.exec(made.stdout)?.[1] ?? '')
  assert.deepEqual([join?.secret, join?.marked], [null, true])
  const { names } = (await api('GET', '/v1/names')).body as { names: { name: string; state: string }[] }
  assert.equal(names.find(({ name }) => name === 'localhost')?.state, 'configured')
})

test('a script without an agent says so where the image has none either', async (t) => {
  const { muster } = plane()
  const made = await muster('node', 'bundle', 'gpu-b8', '--this-machine', '--format', 'script')
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stderr, /has to be in the image, at \/usr\/bin\/muster/)
  const { code, stderr } = await installed(t, made.stdout)
  assert.equal(code, 69)
  assert.match(stderr, /there is no agent/)
  const none = await muster('node', 'bundle', 'gpu-b8', '--this-machine', '--format', 'script', '--agent', 'plane')
  assert.equal(none.code, 2)
  assert.match(none.stderr, /hands out no agent.*\n.*--agents FOLDER/)
})

test('the script installs the agent whose digest it was given, the service, and the join string', async (t) => {
  const { muster } = plane()
  const agent = path.join(tempFolder(t), 'muster-agent.mjs')
  fs.writeFileSync(agent, '#!/usr/bin/env node\nconsole.log("an agent")\n')
  const args = ['--this-machine', '--format', 'script', '--agent-url', agent, '--agent-file', agent]
  const made = await muster('node', 'bundle', 'gpu-b2', ...args)
  assert.equal(made.code, 0, made.stderr)
  const { root, code, stderr } = await installed(t, made.stdout)
  assert.equal(code, 0, stderr)
  assert.deepEqual(fs.readdirSync(path.join(root, 'usr')), ['bin'], 'all else is below /etc')
  assert.deepEqual(fs.readdirSync(path.join(root, 'usr/bin')), ['muster'], 'nothing is left of the way there')
  assert.equal(fs.readFileSync(path.join(root, 'usr/bin/muster'), 'utf8'), fs.readFileSync(agent, 'utf8'))
  assert.equal(fs.statSync(path.join(root, 'usr/bin/muster')).mode & 0o777, 0o755)
  const joinFile = path.join(root, 'etc/muster/join')
  assert.equal(fs.statSync(joinFile).mode & 0o777, 0o600)
  assert.notEqual(parseJoinString(fs.readFileSync(joinFile, 'utf8')), null)
  const unit = fs.readFileSync(path.join(root, 'etc/systemd/system/muster-agent.service'), 'utf8')
  assert.equal(unit, fs.readFileSync('packaging/systemd/muster-agent.service', 'utf8'))
  const enabled = path.join(root, 'etc/systemd/system/multi-user.target.wants/muster-agent.service')
  assert.equal(fs.readlinkSync(enabled), '/etc/systemd/system/muster-agent.service', 'the image starts it')
})

test('an agent that came as a package is left as it is: the script brings the join string alone', async (t) => {
  const root = path.join(tempFolder(t), 'image')
  const units = path.join(root, 'usr/lib/systemd/system')
  fs.mkdirSync(units, { recursive: true })
  fs.writeFileSync(path.join(units, 'muster-agent.service'), '[Unit]\n')
  const agent = { kind: 'elsewhere', from: '/nowhere', sha256: sha256Hex('an agent') } as const
  for (const bootstrap of [{ nodeId: 'gpu-b10', join, agent } as const, { nodeId: 'gpu-b10', join, agent: null }]) {
    const { code, stderr } = await installed(t, installScript(bootstrap, service), { root })
    assert.equal(code, 0, stderr)
    assert.match(stderr, /installed as a package/)
  }
  assert.deepEqual(fs.readdirSync(path.join(root, 'etc/muster')), ['join'])
  assert.ok(!fs.existsSync(path.join(root, 'etc/systemd')) && !fs.existsSync(path.join(root, 'usr/bin')))
})

test('a bundle brings the statement keys where it is asked to, for root to pin, and no other does', async (t) => {
  const { muster } = plane()
  const bundle = (format: string, ...more: string[]) =>
    muster('node', 'bundle', 'gpu-b12', '--this-machine', '--agent', 'image', '--format', format, ...more)
  const keys = (await muster('ca', 'bundle', '--statements')).stdout
  assert.match(keys, /^-----BEGIN PUBLIC KEY-----\n/)
  const made = await bundle('script', '--pin-statements')
  assert.equal(made.code, 0, made.stderr)
  const { root, code, stderr } = await installed(t, made.stdout, { withAgent: true })
  assert.equal(code, 0, stderr)
  const file = path.join(root, 'etc/muster/statement-keys.pem')
  assert.equal(fs.readFileSync(file, 'utf8'), keys)
  assert.deepEqual([fs.statSync(file).mode & 0o777, fs.statSync(path.dirname(file)).mode & 0o777], [0o644, 0o755])
  const userData = await bundle('cloud-init', '--pin-statements')
  const { write_files: files } = parseYaml(userData.stdout) as { write_files: { content: string }[] }
  assert.ok(files[0]?.content.includes(keys), userData.stderr)
  const without = await bundle('script')
  assert.equal(without.code, 0, without.stderr)
  assert.doesNotMatch(without.stdout, /statement-keys/)
  const refused = await bundle('env', '--pin-statements')
  assert.equal(refused.code, 2, refused.stderr)
  const strange = { nodeId: 'gpu-b12', join, agent: null, statementKeys: [`${keys}$(id)`] }
  assert.equal(faultOfBootstrap(strange), 'the statement keys are no PEM')
})

test('an agent with another digest is not installed, and nothing else is', async (t) => {
  const agent = path.join(tempFolder(t), 'agent.mjs')
  fs.writeFileSync(agent, 'something else')
  const meant = { kind: 'elsewhere', from: agent, sha256: sha256Hex('what was meant') } as const
  const bootstrap = { nodeId: 'gpu-b3', join, agent: meant }
  const { root, code, stderr } = await installed(t, installScript(bootstrap, service))
  assert.equal(code, 76)
  assert.match(stderr, /another digest/)
  assert.deepEqual(fs.readdirSync(path.join(root, 'usr/bin')), [])
  assert.deepEqual(fs.readdirSync(path.join(root, 'etc/muster')), [])
})

test('cloud-init takes the bundle by its schema', async (t) => {
  const program = withPeer(t, 'cloud-init')
  if (program === null) return
  const { muster } = plane()
  const file = path.join(tempFolder(t), 'user-data')
  const url = 'https://files.example/muster-agent.mjs?v=1&x=y'
  const agent = ['--agent-url', url, '--agent-sha256', 'b'.repeat(64)]
  const made = await muster(
    'node',
    'bundle',
    'gpu-b4',
    '--this-machine',
    '--format',
    'cloud-init',
    ...agent,
    '--out',
    file,
  )
  assert.equal(made.code, 0, made.stderr)
  const { stdout } = await run(program, ['schema', '--config-file', file])
  assert.match(stdout, /Valid/i)
})

test('a script that failed under cloud-init stays, says how it is run again, and is removed once it has succeeded', async (t) => {
  const script = path.join(tempFolder(t), 'install.sh')
  const { runcmd } = parseYaml(cloudInit({ nodeId: 'gpu-b8', join, agent: null }, service)) as { runcmd: string[][] }
  assert.equal(runcmd.length, 1, 'its exit code is what cloud-init reports')
  const [program = '', ...words] = runcmd[0] ?? []
  assert.ok(words.at(-1)?.includes('/var/lib/muster-install.sh'))
  const here = words.map((word) => word.replaceAll('/var/lib/muster-install.sh', script))
  fs.writeFileSync(script, 'exit 69\n')
  await assert.rejects(run(program, here), (error: { code: number; stderr: string }) => {
    assert.equal(error.code, 69)
    assert.equal(error.stderr, `muster: gpu-b8 has not joined (exit code 69); run it again: sh ${script}\n`)
    return true
  })
  assert.ok(fs.existsSync(script))
  fs.writeFileSync(script, 'exit 0\n')
  await run(program, here)
  assert.ok(!fs.existsSync(script))
})

test('the tokens of a batch become user data for each machine, as docs/MACHINES.md shows', async (t) => {
  const { muster } = plane()
  const folder = tempFolder(t)
  const [nodes, tokens] = [path.join(folder, 'nodes.csv'), path.join(folder, 'tokens.tsv')]
  fs.writeFileSync(nodes, 'id\ngpu-u1\ngpu-u2.rack-7\n')
  const made = await muster('node', 'enroll', '--batch', nodes, '--tokens', tokens)
  assert.equal(made.code, 0, made.stderr)
  await run('sh', ['-euc', documentedBlock('MACHINES.md', 'sh')], { cwd: folder })
  const files = fs.readdirSync(path.join(folder, 'user-data'))
  assert.deepEqual(files, ['gpu-u1', 'gpu-u2.rack-7'])
  const program = withPeer(t, 'cloud-init')
  for (const name of files) {
    const file = path.join(folder, 'user-data', name)
    assert.equal(fs.statSync(file).mode & 0o777, 0o600)
    const { write_files: written } = parseYaml(fs.readFileSync(file, 'utf8')) as { write_files: { content: string }[] }
    assert.notEqual(parseJoinString(written[0]?.content ?? '')?.secret ?? null, null)
    if (program !== null) assert.match((await run(program, ['schema', '--config-file', file])).stdout, /Valid/i)
  }
})

test('cloud-init takes every firmware profile by its schema, and the profile it is given is the one it applies', async (t) => {
  const program = withPeer(t, 'cloud-init')
  if (program === null) return
  const folder = tempFolder(t)
  for (const firmware of firmwareProfiles) {
    const file = path.join(folder, firmware.name)
    fs.writeFileSync(file, cloudInit({ nodeId: 'gpu-b6', join, agent: null }, service, firmware))
    const { stdout } = await run(program, ['schema', '--config-file', file])
    assert.match(stdout, /Valid/i)
  }
})

test('a bundle applies the firmware that the hardware profile of its machine asks for, and no other', async () => {
  const { muster } = plane()
  const ok = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await muster(...words)
    assert.equal(code, 0, stderr)
    return stdout
  }
  await ok('hardware-profile', 'create', 'h100-vm', '--firmware', 'slice-vm', '--slots', '0', '--sku', 'h100.slice')
  await ok('node', 'enroll', 'gpu-b7')
  await ok('node', 'tag', 'gpu-b7', '--add', 'h100-vm')
  const bundle = ['node', 'bundle', 'gpu-b7', '--this-machine', '--format', 'cloud-init', '--firmware']
  const other = await muster(...bundle, 'baremetal')
  assert.equal(other.code, 2)
  assert.match(other.stderr, /hardware profile h100-vm, which asks for the firmware slice-vm/)
  const made = await ok(...bundle, 'slice-vm')
  assert.match(made, /^packages: \["qemu-system-x86"/m)
  assert.match(made, /vfio_pci/)
  assert.match(made, /^power_state:/m)
  const unknown = await muster(...bundle, 'windows')
  assert.match(unknown.stderr, /slice-vm .*; baremetal/)
})

test('what could be read as something else by a shell, YAML or systemd is not put into a bundle', () => {
  const sha256 = 'b'.repeat(64)
  const bundle = (agent: AgentSource) => ({ nodeId: 'gpu-1', join, agent })
  const elsewhere = (from: string, digest = sha256) => bundle({ kind: 'elsewhere', from, sha256: digest })
  const pem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  const ofPlane = (url: string, roots = [pem], digest = sha256) =>
    bundle({ kind: 'plane', roots, builds: [{ architecture: 'x64', url, sha256: digest }] })
  const good = 'https://plane.example:8443/v1/agent/b'
  assert.equal(faultOfBootstrap(ofPlane(good)), null)
  const bad = [
    { nodeId: 'a; rm -rf /', join, agent: null },
    { nodeId: 'gpu-1', join: join.replace('8443', "8443/'$(id)'"), agent: null },
    { nodeId: 'gpu-1', join: join.replace('8443', '8443/\nrunc: x'), agent: null },
    elsewhere('http://files.example/a'),
    elsewhere("https://files.example/a'b"),
    elsewhere('/opt/../$(id)'),
    elsewhere('/opt/agent', 'short'),
    ofPlane('https://files.example/v1/agent/b'),
    ofPlane('http://plane.example:8443/v1/agent/b'),
    ofPlane("https://plane.example:8443/v1/agent/'b"),
    ofPlane(good, []),
    ofPlane(good, [`${pem}END_OF_FILE\nid\n`]),
    ofPlane(good, [pem], 'short'),
  ]
  for (const bootstrap of bad) assert.notEqual(faultOfBootstrap(bootstrap), null, JSON.stringify(bootstrap))
})

test('whatever a value holds, the script writes it and runs none of it', async (t) => {
  const hostile = fc.sample(fc.string({ unit: fc.constantFrom(...`'"\`$(){};&|<>\\ \n#!*~x`), maxLength: 40 }), 6)
  for (const value of [...hostile, 'END_OF_FILE\nid\n']) {
    const script = installScript(
      { nodeId: 'gpu-b5', join: value, agent: null },
      { unit: value, sysusers: value, journald: value },
    )
    const { root, code, stderr } = await installed(t, script, { withAgent: true })
    assert.equal(code, 0, stderr)
    assert.equal(fs.readFileSync(path.join(root, 'etc/muster/join'), 'utf8'), value + '\n')
    assert.equal(fs.readFileSync(path.join(root, 'etc/systemd/system/muster-agent.service'), 'utf8'), value)
    const bootstrap = { nodeId: 'gpu-b5', join: value, agent: null }
    const read = parseYaml(cloudInit(bootstrap, service)) as { write_files: { content: string }[]; runcmd: unknown }
    assert.deepEqual(
      [Object.keys(read), read.write_files.map(({ content }) => content)],
      [['write_files', 'runcmd'], [installScript(bootstrap, service)]],
    )
  }
})
