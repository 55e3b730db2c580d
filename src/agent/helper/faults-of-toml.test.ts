import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { testTrust } from '../../../test/fakes/helped-host.ts'
import { hostOfPrograms } from '../../../test/fakes/host-of-programs.ts'
import { faultsOfToml } from './faults-of-toml.ts'
import { readAgentToml } from './read-agent-toml.ts'

const faultsIn = (agentToml: string): readonly string[] => {
  const read = readAgentToml(agentToml, testTrust)
  return read.kind === 'allowed' ? faultsOfToml(read.toml, null, testTrust) : assert.fail(read.message)
}

test('what agent.toml lists and this host does not have is named, of outputs, reloads, services and checks', (t) => {
  const host = hostOfPrograms(t, Date.now())
  const me = String(testTrust.uid === 0 ? 65534 : testTrust.uid)
  host.allow(`
[reloads.web]
command = ["/bin/true"]
[services.app]
executable = "/bin/true"
user = "${me}"
`)
  assert.deepEqual(faultsIn(host.agentToml), [])
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
  assert.deepEqual(faultsIn(host.agentToml), [
    `${host.folder}/roots.pem is not a list of certificates in PEM`,
    `${host.tls}: there is no user no-such-user`,
    `${host.tls}: there is no group no-such-group`,
    'reload web: there is no user no-such-user',
    'reload web: /usr/bin/no-such is not run: /usr/bin/no-such does not exist',
    'service app: /usr/bin/no-such is not run: /usr/bin/no-such does not exist',
    'There is no user no-such-user on this host',
    'check disks: /usr/bin/no-such is not run: /usr/bin/no-such does not exist',
  ])
})
