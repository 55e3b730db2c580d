import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nothingAllowed, parseAgentToml, type AgentToml } from './agent-toml.ts'

const allowed = (text: string): AgentToml => {
  const parsed = parseAgentToml(text)
  assert.ok(parsed.kind === 'allowed', parsed.kind === 'invalid' ? parsed.why : '')
  return parsed.toml
}

const fault = (text: string): string => {
  const parsed = parseAgentToml(text)
  assert.ok(parsed.kind === 'invalid', text)
  return parsed.why
}

test('an empty file allows nothing', () => {
  assert.deepEqual(allowed(''), nothingAllowed)
})

test('what is listed is what is allowed, with the least where the file says nothing', () => {
  const toml = allowed(`
[node]
domain = "example.test"
id = "gpu-001"

[programs]
roots = "/etc/muster/programs-roots.pem"

[[outputs]]
directory = "/etc/nginx/tls"

[[outputs]]
directory = "/etc/postgresql/tls"
names = ["db"]
owners = ["postgres", "root"]
groups = ["ssl-cert"]
key_mode = 0o600

[reloads.nginx]
unit = "nginx.service"

[reloads."etcd@1"]
command = ["/usr/bin/kill", "-HUP", "1"]
user = "etcd"
within = "5s"

[services.exporter]
executable = "/usr/bin/exporter"
user = "exporter"

[checks.disks]
executable = "/usr/lib/checks/disks"
user = "nobody"
arguments = "any"
environment = ["LEVEL"]

[checks.kernel-errors]
reads = "kernel-log"
last = "1h"
`)
  assert.deepEqual(toml.node, { domain: 'example.test', id: 'gpu-001' })
  assert.equal(toml.programRoots, '/etc/muster/programs-roots.pem')
  assert.deepEqual(toml.outputs, [
    { directory: '/etc/nginx/tls', names: null, owners: [], groups: [], keyMode: 0o640 },
    {
      directory: '/etc/postgresql/tls',
      names: ['db'],
      owners: ['postgres', 'root'],
      groups: ['ssl-cert'],
      keyMode: 0o600,
    },
  ])
  assert.deepEqual(
    [...toml.reloads],
    [
      ['nginx', { kind: 'unit', unit: 'nginx.service', action: 'reload', withinMs: 30_000 }],
      ['etcd@1', { kind: 'command', command: ['/usr/bin/kill', '-HUP', '1'], user: 'etcd', withinMs: 5_000 }],
    ],
  )
  assert.deepEqual(toml.services.get('exporter'), {
    executable: '/usr/bin/exporter',
    user: 'exporter',
    arguments: [],
    environment: [],
    workingDirectory: null,
  })
  assert.deepEqual(toml.checks.get('kernel-errors'), { kind: 'kernel-log', lastMs: 3_600_000, withinMs: 30_000 })
  assert.deepEqual(toml.checks.get('disks'), {
    kind: 'program',
    executable: '/usr/lib/checks/disks',
    user: 'nobody',
    arguments: 'any',
    environment: ['LEVEL'],
    withinMs: 30_000,
  })
})

const wrong: readonly (readonly [text: string, why: RegExp])[] = [
  ['[nodes]', /^line 1, nodes: is unknown here; known are node, programs, outputs, reloads, services, checks, tasks$/],
  ['[node]\nid = "a"', /^line 1, node\.domain: is missing; it takes the name of the trust domain$/],
  ['[node]\nid = "a"\ndomain = "b"\nepoch = 1', /^line 4, node\.epoch: is unknown here/],
  ['node = 1', /^line 1, node: is a table: \[node\]$/],
  ['[[outputs]]\ndirectory = "/a/../etc"', /^line 2, outputs\[1\]\.directory: takes the full path/],
  ['[[outputs]]\ndirectory = "a"', /takes the full path/],
  ['[[outputs]]\ndirectory = "/a/"', /takes the full path/],
  ['[[outputs]]\ndirectory = "/"', /takes the full path/],
  ['[[outputs]]\ndirectory = "/a"\n[[outputs]]\ndirectory = "/a"', /outputs: \/a is listed twice$/],
  ['[[outputs]]\ndirectory = "/a"\nkey_mode = 0o644', /^line 3, outputs\[1\]\.key_mode: takes a mode/],
  ['[[outputs]]\ndirectory = "/a"\nowners = "root"', /outputs\[1\]\.owners: takes a list/],
  ['[reloads.a]\nwithin = "5s"', /^line 1, reloads\.a: takes unit or command, one of them$/],
  ['[reloads.a]\nunit = "a.service"\ncommand = ["/b"]', /takes unit or command/],
  ['[reloads.a]\nunit = "a.service; b"', /reloads\.a\.unit: takes the name of a unit/],
  ['[reloads.a]\ncommand = ["kill"]', /reloads\.a\.command: begins with the full path/],
  ['[reloads.a]\nunit = "a.service"\nwithin = "2h"', /reloads\.a\.within: takes a duration/],
  ['[reloads."../a"]\nunit = "a.service"', /^line 1, reloads: \.\.\/a is not a name it takes$/],
  ['[services.a]\nexecutable = "/a"', /services\.a\.user: is missing/],
  [
    '[services.a]\nexecutable = "/a"\nuser = "b"\narguments = [1]',
    /services\.a\.arguments: takes a list of strings, or "any"$/,
  ],
  ['[checks.a]\nreads = "passwords"', /checks\.a\.reads: takes "kernel-log"$/],
  ['[checks.a]\nreads = "kernel-log"\nuser = "b"', /checks\.a\.user: is unknown here/],
  ['[checks.a]\nexecutable = "a"\nuser = "b"', /checks\.a\.executable: takes a full path/],
]

test('what is unknown or out of bounds is refused with line and key', () => {
  for (const [text, why] of wrong) assert.match(fault(text), why, text)
})

test('[tasks] lists what tasks may do, with the least where it says nothing', () => {
  assert.equal(allowed('[node]\ndomain = "example.test"\nid = "gpu-001"\n').tasks, null)
  assert.deepEqual(allowed('[tasks]\n').tasks, {
    statementKeys: '/etc/muster/statement-keys.pem',
    state: null,
    typesFolder: '/etc/muster/task-types',
    allow: [],
    run: new Map(),
    services: new Map(),
    files: [],
    cleanup: new Map(),
  })
  const { tasks } = allowed(`
[tasks]
state = "/run/muster-agent-helper-tasks"
allow = ["run", "service", "fetch-file", "cleanup", "x-drain"]
[tasks.run.smi]
executable = "/usr/bin/nvidia-smi"
user = "nobody"
arguments = ["-q"]
within = "2h"
memory = "64M"
[tasks.services.web]
unit = "nginx.service"
actions = ["restart", "reload"]
[[tasks.files]]
directory = "/srv/models"
owner = "nobody"
mode = 0o640
largest = "2G"
within = "30m"
[tasks.cleanup.logs]
directories = ["/var/log/app"]
keep_newest = 3
evidence = "/var/log/cleaned"
`)
  assert.deepEqual(tasks?.run.get('smi'), {
    executable: '/usr/bin/nvidia-smi',
    user: 'nobody',
    arguments: ['-q'],
    workingDirectory: '/',
    withinMs: 7_200_000,
    memoryBytes: 67_108_864,
  })
  assert.deepEqual(tasks.services.get('web'), { unit: 'nginx.service', actions: ['restart', 'reload'] })
  assert.deepEqual(tasks.files, [
    { directory: '/srv/models', owner: 'nobody', group: null, mode: 0o640, largest: 2 ** 31, withinMs: 1_800_000 },
  ])
  assert.deepEqual(tasks.cleanup.get('logs'), {
    directories: ['/var/log/app'],
    keepNewest: 3,
    olderThanMs: 0,
    evidence: '/var/log/cleaned',
  })
})

test('what [tasks] cannot take is said with line and key', () => {
  const program = '[tasks.run.a]\nexecutable = "/bin/true"\nuser = "nobody"\n'
  assert.match(fault('[tasks]\nallow = ["Run"]\n'), /line 2, tasks.allow: takes a list: types of tasks/)
  assert.match(fault('[tasks]\nshell = true\n'), /tasks.shell: is unknown here/)
  assert.match(fault(`${program}within = "25h"\n`), /tasks.run.a.within: takes a duration between 1s and 24h/)
  assert.match(fault(`${program}memory = "1M"\n`), /tasks.run.a.memory: takes bytes with K, M or G, at least "16M"/)
  assert.match(
    fault(`${program.replace('nobody', 'root')}arguments = "any"\n`),
    /tasks.run.a.arguments: takes a list where the user is root/,
  )
  assert.match(fault('[[tasks.files]]\ndirectory = "/srv"\nmode = 0o4755\n'), /tasks.files\[1\].mode: takes a mode/)
  const cleanup = '[tasks.cleanup.a]\ndirectories = ["/var/log"]\nevidence = "/var/log/old"\n'
  assert.match(fault(cleanup), /takes keep_newest, older_than or both/)
  assert.match(fault(`${cleanup}older_than = "1d"\n`), /evidence: cannot be in \/var\/log, which is cleaned up/)
})

test('no task may write where the helper keeps what it believes', () => {
  const files = (directory: string): string => `[[tasks.files]]\ndirectory = "${directory}"\n`
  const refused = /tasks.*cannot list .*: what the helper believes and remembers is there or below/
  for (const place of ['/etc/muster', '/etc', '/etc/muster/task-types', '/var/lib/muster-agent-helper/tasks'])
    assert.match(fault(files(place)), refused)
  assert.match(fault(`[tasks]\nstate = "/srv/state"\n${files('/srv')}`), refused)
  assert.match(fault(`[tasks]\nstatement_keys = "/srv/keys/a.pem"\n${files('/srv/keys')}`), refused)
  assert.match(fault(`[tasks]\ntypes_folder = "/srv/types"\n${files('/srv/types')}`), refused)
  const cleanup = (directory: string, evidence: string): string =>
    `[tasks.cleanup.a]\ndirectories = ["${directory}"]\nolder_than = "1d"\nevidence = "${evidence}"\n`
  assert.match(fault(cleanup('/etc/muster', '/srv/evidence')), refused)
  assert.match(fault(cleanup('/srv/dumps', '/var/lib/muster-agent-helper/tasks')), refused)
})
