import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { generateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { testTrust } from '../../../test/fakes/helped-host.ts'
import { hostOfPrograms } from '../../../test/fakes/host-of-programs.ts'
import { faultsOfToml } from './faults-of-toml.ts'
import { readAgentToml } from './read-agent-toml.ts'

const faultsIn = async (agentToml: string): Promise<readonly string[]> => {
  const read = readAgentToml(agentToml, testTrust)
  return read.kind === 'allowed' ? faultsOfToml(read.toml, null, testTrust) : assert.fail(read.message)
}

test('what agent.toml lists and this host does not have is named, of outputs, reloads, services and checks', async (t) => {
  const host = hostOfPrograms(t, Date.now())
  const me = String(testTrust.uid === 0 ? 65534 : testTrust.uid)
  host.allow(`
[reloads.web]
command = ["/bin/true"]
[services.app]
executable = "/bin/true"
user = "${me}"
`)
  assert.deepEqual(await faultsIn(host.agentToml), [])
  host.allow(`owners = ["no-such-user"]
groups = ["no-such-group"]
[reloads.web]
command = ["/usr/bin/no-such"]
user = "no-such-user"
[services.app]
executable = "/usr/bin/no-such"
user = "${me}"
[checks.disks]
executable = "/usr/bin/no-such"
user = "no-such-user"
[checks.kernel-errors]
reads = "kernel-log"
`)
  fs.writeFileSync(`${host.folder}/roots.pem`, 'nothing')
  assert.deepEqual(await faultsIn(host.agentToml), [
    `programs.roots: ${host.folder}/roots.pem is not a list of certificates in PEM`,
    `outputs: ${host.tls}: there is no user no-such-user`,
    `outputs: ${host.tls}: there is no group no-such-group`,
    'reload web: there is no user no-such-user',
    'reload web: /usr/bin/no-such is not run: /usr/bin/no-such does not exist',
    'service app: /usr/bin/no-such is not run: /usr/bin/no-such does not exist',
    'There is no user no-such-user on this host',
    'check disks: /usr/bin/no-such is not run: /usr/bin/no-such does not exist',
  ])
})

test('what [tasks] lists and this host does not have is named', async (t) => {
  const host = hostOfPrograms(t, Date.now())
  host.allow(`
[tasks]
statement_keys = "${host.folder}/roots.pem"
types_folder = "${host.folder}/types"
allow = ["run", "x-none"]
[tasks.run.app]
executable = "/usr/bin/no-such"
user = "no-such-user"
[[tasks.files]]
directory = "${host.folder}/none"
owner = "no-such-user"
[tasks.cleanup.logs]
directories = ["${host.tls}"]
older_than = "1d"
evidence = "${host.folder}/none"
`)
  const isUnlimited = (fault: string): boolean => fault.startsWith('no program of a task is run')
  assert.deepEqual(
    (await faultsIn(host.agentToml)).filter((fault) => !isUnlimited(fault)),
    [
      `statement keys: ${host.folder}/roots.pem is not a list of 1 to 8 public keys in PEM`,
      'tasks.run.app: There is no user no-such-user on this host',
      'tasks.run.app: /usr/bin/no-such is not run: /usr/bin/no-such does not exist',
      `tasks.files: ${host.folder}/none does not exist`,
      `tasks.files: ${host.folder}/none: there is no user no-such-user`,
      `tasks.cleanup: ${host.folder}/none does not exist`,
      `x-none: x-none has no manifest that can be believed: ${host.folder}/types does not exist`,
    ],
  )
})

test('where statement keys are pinned, services and checks need a node, and keys that can be read', async (t) => {
  const host = hostOfPrograms(t, Date.now())
  const me = String(testTrust.uid === 0 ? 65534 : testTrust.uid)
  const keys = `${host.folder}/statement-keys.pem`
  const faults = async (): Promise<readonly string[]> => {
    const read = readAgentToml(host.agentToml, testTrust)
    return read.kind === 'allowed' ? faultsOfToml(read.toml, null, testTrust, keys) : assert.fail(read.message)
  }
  fs.writeFileSync(host.agentToml, `[services.app]\nexecutable = "/bin/true"\nuser = "${me}"\n`, { mode: 0o644 })
  assert.deepEqual(await faults(), [])
  fs.writeFileSync(keys, 'nothing', { mode: 0o644 })
  assert.deepEqual(await faults(), [
    `statement keys: ${keys} is not a list of 1 to 8 public keys in PEM`,
    'services and checks take a statement for this node, and agent.toml has no [node]',
  ])
  fs.writeFileSync(keys, toPem('PUBLIC KEY', generateKey('ed25519').spki))
  host.allow(`[services.app]\nexecutable = "/bin/true"\nuser = "${me}"\n`)
  assert.deepEqual(await faults(), [])
})
