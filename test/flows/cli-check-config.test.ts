// `--check-config`: what a process would run with, from which place, and what is wrong, without starting it.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { runCli } from '#cli/kit/run-cli.ts'
import { testCli } from '../fakes/test-cli.ts'
import type { Scope } from '../process/cleanup.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { root as repository } from '../../scripts/repository.ts'

const folderWith = (t: Scope, name: string, text: string): { readonly folder: string; readonly file: string } => {
  const folder = tempFolder(t)
  const file = path.join(folder, name)
  fs.writeFileSync(file, text, { mode: 0o644 })
  return { folder, file }
}

const run = async (args: readonly string[], env: Record<string, string> = {}) => {
  const { cli, stdout, stderr } = testCli({ env })
  return { exit: await runCli(args, cli), stdout: stdout(), stderr: stderr() }
}

test('every setting of a plane is shown with its value and where it came from', async (t) => {
  const { folder, file } = folderWith(t, 'plane.toml', '# a plane\nnode_listen = "0.0.0.0:9443"\ndata = "data"\n')
  const args = ['plane', '--config', file, '--check-config', '--server-name', 'plane.example.org']
  const { exit, stdout } = await run(args, { MUSTER_LOG_LEVEL: 'debug' })
  assert.equal(exit, exitCodes.ok)
  assert.match(stdout, new RegExp(`^node_listen +0\\.0\\.0\\.0:9443 +${file}:2$`, 'm'))
  assert.match(stdout, new RegExp(`^data +${folder}/data +${file}:3$`, 'm'))
  assert.match(stdout, /^server_name +plane\.example\.org +--server-name$/m)
  assert.match(stdout, /^log_level +debug +MUSTER_LOG_LEVEL$/m)
  assert.match(stdout, /^operator_listen +127\.0\.0\.1:8440 +default$/m)
  assert.match(
    stdout,
    /^warning +no sealing key is named\. Under a unit .* this command cannot see it; without it .* beside/m,
  )
  assert.match(stdout, /^ok /m)
  assert.deepEqual(fs.readdirSync(folder), ['plane.toml'])
})

test('what follows for settings that are not set is shown as a value, and what may be wrong is warned about', async (t) => {
  const text =
    'data = "data"\nnode_listen = "192.0.2.9:9443"\nstatus_url = "http://status.example.org"\nstatus_listen = "off"\n'
  const { file } = folderWith(t, 'plane.toml', text)
  const { exit, stdout } = await run(['plane', '--config', file, '--check-config'])
  assert.equal(exit, exitCodes.ok)
  assert.match(stdout, /^recovery_listen +192\.0\.2\.9:8442 +default$/m)
  assert.match(stdout, /^tls_threads +[01] +default$/m)
  assert.match(stdout, /^proxy_from +\(none\) +default$/m)
  assert.match(stdout, /^warning +--node-listen: 192\.0\.2\.9 is no address of this machine now$/m)
  assert.match(stdout, /^warning +certificates name http:\/\/status\.example\.org, and this plane has no listener/m)
})

test('all that is wrong with a file is said at once, for programs too', async (t) => {
  const { file } = folderWith(t, 'plane.toml', 'node_listn = "x"\nreplicas = "2"\nstatus_url = "http://u:secret@a"\n')
  const { exit, stdout } = await run(['plane', '--check-config', '-o', 'json'], { MUSTER_CONFIG: file })
  assert.equal(exit, exitCodes.usage)
  const body = JSON.parse(stdout) as { ok: boolean; problems: string[]; settings: { key: string; value: unknown }[] }
  assert.equal(body.ok, false)
  assert.deepEqual(
    body.problems.map((problem) => problem.replace(file, 'FILE')),
    [
      'FILE line 1: node_listn is unknown; did you mean node_listen?',
      'FILE line 2: replicas is written as a whole number: replicas = 1',
      'FILE line 3: status_url takes a URL such as http://status.example.org, without user, query and fragment, of at most 128 characters',
    ],
  )
  assert.doesNotMatch(stdout, /u:secret/)
})

test('a plane with a wrong file does not start, and says which line it is', async (t) => {
  const { folder, file } = folderWith(t, 'plane.toml', '\nnode_listen = "8443"\n')
  const { exit, stderr } = await run(['plane', '--config', file, '--data', path.join(folder, 'data')])
  assert.equal(exit, exitCodes.usage)
  assert.match(stderr, new RegExp(`${file} line 2: node_listen takes HOST:PORT`))
  assert.deepEqual(fs.readdirSync(folder), ['plane.toml'])
})

test('files that the settings of a plane name are looked at', async (t) => {
  const { folder, file } = folderWith(
    t,
    'plane.toml',
    'data = "plane.toml"\nseal_key = "seal"\nalert_webhook = "https://hooks.example.org/services/secret-path"\nalert_webhook_secret_file = "hook"\n',
  )
  const { exit, stdout } = await run(['plane', '--config', file, '--check-config'])
  assert.equal(exit, exitCodes.misconfigured)
  assert.match(stdout, /^wrong +\S+plane\.toml is not a folder$/m)
  assert.match(stdout, new RegExp(`^wrong +there is no sealing key at ${folder}/seal$`, 'm'))
  assert.match(stdout, new RegExp(`^wrong +--alert-webhook-secret-file: there is no file ${folder}/hook$`, 'm'))
  assert.match(stdout, /^alert_webhook +https:\/\/hooks\.example\.org\/\.\.\. /m)
  assert.doesNotMatch(stdout, /secret-path/)
})

test('commands that work on the store of a plane find it by the same file', async (t) => {
  const { folder, file } = folderWith(t, 'plane.toml', 'data = "elsewhere"\n')
  const { exit, stderr } = await run(['store', 'status', '--config', file])
  assert.equal(exit, exitCodes.notFound)
  assert.match(stderr, new RegExp(`${folder}/elsewhere`))
})

test('every setting of an agent is shown with its value and where it came from', async (t) => {
  const { folder, file } = folderWith(
    t,
    'agent-run.toml',
    'state = "state"\nreport_every = "5m"\nhardware_file = "hw"\n',
  )
  const args = ['agent', 'run', '--config', file, '--check-config', '--key-type', 'p384']
  const { exit, stdout } = await run(args, { MUSTER_RECOVERY: 'bearer' })
  assert.equal(exit, exitCodes.misconfigured)
  assert.match(stdout, new RegExp(`^state +${folder}/state +${file}:1$`, 'm'))
  assert.match(stdout, /^key_type +p384 +--key-type$/m)
  assert.match(stdout, /^recovery +bearer +MUSTER_RECOVERY$/m)
  assert.match(stdout, new RegExp(`^wrong +there is no file ${folder}/hw$`, 'm'))
  assert.deepEqual(fs.readdirSync(folder), ['agent-run.toml'])
})

test('commands that look at an agent find its folder by the same file', async (t) => {
  const { folder, file } = folderWith(t, 'agent-run.toml', 'state = "state"\nunknown_key = 1\n')
  const { exit, stdout } = await run(['agent', 'status', '-o', 'json'], { MUSTER_AGENT_CONFIG: file })
  assert.equal(exit, exitCodes.notReady)
  assert.match(stdout, new RegExp(`No agent has run on ${folder}/state`))
})

test('the settings of a helper are shown, and what its bound lacks', async (t) => {
  const { folder } = folderWith(t, 'agent.toml', '[reloads.x]\ncommand = ["/nowhere/x"]\n')
  const args = [
    'agent',
    'helper',
    '--check-config',
    '--config',
    path.join(folder, 'agent.toml'),
    '--agent-user',
    'root',
  ]
  const { exit, stdout } = await run(args, { STATE_DIRECTORY: '/var/lib/h' })
  assert.equal(exit, exitCodes.misconfigured)
  assert.match(stdout, /^state +\/var\/lib\/h +STATE_DIRECTORY$/m)
  assert.match(stdout, /^wrong +\S/m)
})

test('a folder that all may write is taken where it is mounted read-only, as a ConfigMap of Kubernetes is', (t) => {
  const unshare = withPeer(t, 'unshare')
  if (unshare === null || withPeer(t, 'tmpfs') === null) return
  const top = fs.realpathSync(tempFolder(t))
  const [volume, mounted] = [path.join(top, 'volume'), path.join(top, 'mounted')]
  for (const folder of [volume, mounted]) fs.mkdirSync(folder)
  const read = `
    import { execFileSync } from 'node:child_process'
    import * as fs from 'node:fs'
    import { readSettingsFile } from ${JSON.stringify(path.join(repository, 'src/platform/settings-file.ts'))}
    const [volume, mounted] = ${JSON.stringify([volume, mounted])}
    const problemsOf = (folder) => readSettingsFile(folder + '/some.toml', '/nowhere', {})?.problems
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0777', 'tmpfs', volume])
    fs.mkdirSync(volume + '/..2026', { mode: 0o755 })
    fs.writeFileSync(volume + '/..2026/some.toml', '# nothing is set', { mode: 0o644 })
    fs.symlinkSync('..2026', volume + '/..data')
    fs.symlinkSync('..data/some.toml', volume + '/some.toml')
    const writable = problemsOf(volume)
    execFileSync('mount', ['--bind', volume, mounted])
    execFileSync('mount', ['-o', 'remount,bind,ro', mounted])
    const writableElsewhere = problemsOf(mounted)
    execFileSync('umount', [volume])
    console.log(JSON.stringify([writable, writableElsewhere, problemsOf(mounted)]))`
  const node = [process.execPath, '--input-type=module', '-e', read]
  const { stdout, stderr } = spawnSync(unshare, ['--mount', ...node], { encoding: 'utf8' })
  assert.ok(stdout !== '', stderr)
  const refused = (folder: string) => [
    `${folder}/some.toml could be replaced by another user: ${folder} can be written by other users than its owner (mode 777)`,
  ]
  assert.deepEqual(JSON.parse(stdout), [refused(volume), refused(mounted), []])
})
