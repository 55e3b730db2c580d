import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { Failure } from '#cli/kit/failure.ts'
import { testCli } from '../../../test/fakes/test-cli.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { readOverlayFile, readVClusterFile } from './overlay-file.ts'

const read = (text: string) => readOverlayFile(testCli({ input: text }).cli, '-')

const messageOf = async (text: string): Promise<string> => {
  try {
    await read(text)
  } catch (error) {
    assert.ok(error instanceof Failure, String(error))
    return error.message
  }
  assert.fail('it was taken')
}

const yaml = `# what workers run
files:
  - path: etc/worker.conf
    mode: 0640
    template: true
    content: |
      node = {id}
services:
  - name: worker
    command: [/usr/bin/worker, "{overlay}/etc/worker.conf"]
    user: worker
    environment: {BATCH: "8"}
    workingDirectory: /var/lib/worker
    restart: on-failure
    limits: {memoryBytes: 2GiB, cpus: 1.5, openFiles: 4096}
checks:
  - {name: gpus, command: ["muster:gpus", "8"], intervalMs: 30s, timeoutMs: 5s}
`

test('YAML becomes what the API takes: octal modes, durations and sizes as people write them', async () => {
  const { overlay } = await read(yaml)
  assert.deepEqual(overlay, {
    files: [{ path: 'etc/worker.conf', mode: 0o640, template: true, content: 'node = {id}\n' }],
    services: [
      {
        name: 'worker',
        command: ['/usr/bin/worker', '{overlay}/etc/worker.conf'],
        user: 'worker',
        environment: { BATCH: '8' },
        workingDirectory: '/var/lib/worker',
        restart: 'on-failure',
        limits: { memoryBytes: 2 * 2 ** 30, cpus: 1.5, openFiles: 4096 },
      },
    ],
    checks: [{ name: 'gpus', command: ['muster:gpus', '8'], intervalMs: 30_000, timeoutMs: 5_000 }],
  })
})

test('JSON as the API answers it is taken as it is; parts may be left out', async () => {
  const json = '{"files":[{"path":"a","mode":420,"content":""},{"path":"b","mode":"0600","content":""}]}'
  assert.deepEqual((await read(json)).overlay, {
    files: [
      { path: 'a', mode: 420, content: '' },
      { path: 'b', mode: 0o600, content: '' },
    ],
    services: [],
  })
  assert.deepEqual((await read('')).overlay, { files: [], services: [] })
})

test('what is wrong is said with its line and its key', async () => {
  const file = (line: string): string => `files:\n  - path: etc/a\n    content: x\n    ${line}\n`
  const service = (line: string): string => `services:\n  - name: worker\n    command: [/bin/x]\n    ${line}\n`
  const cases: readonly (readonly [string, RegExp])[] = [
    ['services: [', /^-:1: /],
    ['a: 1\na: 2\n', /^-:2: .*unique/],
    ['services: {}\n', /^-:1: services takes a list/],
    [file('mode: 644'), /^-:4: files\[0\]\.mode takes octal permissions from 0400 to 0777/],
    [file('mode: 0999'), /^-:4: files\[0\]\.mode takes octal/],
    [file('node: 0644'), /^-:4: files\[0\]\.node is no key; there are path, mode, content, template/],
    ['files:\n  - path: /etc/a\n', /^-:2: files\[0\]\.path takes a relative path/],
    ['files:\n  - path: etc/a\n    mode: 0644\n', /^-:2: files\[0\] needs content/],
    [service('user: root'), /^-:4: services\[0\]\.user takes the name of a user other than root/],
    [service('environment: {MUSTER_NODE: x}'), /^-:4: services\[0\]\.environment takes/],
    [service('environment: {BATCH: 8}'), /^-:4: services\[0\]\.environment takes names and values, both text/],
    [service('restart: sometimes'), /^-:4: services\[0\]\.restart takes always, on-failure or never/],
    [
      service('limits: {memoryBytes: 2GB}'),
      /^-:4: services\[0\]\.limits\.memoryBytes takes bytes, or a size such as 512MiB/,
    ],
    [
      'services:\n  - name: w\n    command:\n      - /bin/x\n      - 8\n',
      /^-:5: services\[0\]\.command\[1\] takes a program/,
    ],
    [
      'checks:\n  - name: c\n    command: [x]\n    intervalMs: soon\n',
      /^-:4: checks\[0\]\.intervalMs takes a duration/,
    ],
  ]
  for (const [text, wanted] of cases) assert.match(await messageOf(text), wanted, text)
})

const folderWith = (t: TestContext, files: Readonly<Record<string, string>>): string => {
  const folder = path.join(tempFolder(t), 'training')
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    fs.writeFileSync(path.join(folder, name), text)
  }
  return folder
}

test('a folder is a vCluster: its name, its document, and the files beside it', async (t) => {
  const folder = folderWith(t, {
    'vcluster.yaml':
      'description: big\npolicy: {enforcementMode: enforce}\nfiles:\n  - {path: etc/a, template: true, mode: 0600}\n',
    'files/etc/a': '{id}\n',
    'files/bin/run': '#!/bin/sh\n',
  })
  fs.chmodSync(path.join(folder, 'files/bin/run'), 0o775)
  const { name, set, overlay } = await readVClusterFile(testCli({}).cli, folder)
  assert.deepEqual([name, set], ['training', { description: 'big', 'policy.enforcementMode': 'enforce' }])
  assert.deepEqual(overlay.files, [
    { path: 'bin/run', mode: 0o755, content: '#!/bin/sh\n' },
    { path: 'etc/a', mode: 0o600, content: '{id}\n', template: true },
  ])
})

test('the outputs of a vCluster stand in its document, with durations and octal modes', async () => {
  const text = 'name: web\noutputs:\n  - {name: nginx, lifetimeMs: 12h, addresses: true, files: {keyMode: 0640}}\n'
  const { set } = await readVClusterFile(testCli({ input: text }).cli, '-')
  const outputs = [{ name: 'nginx', lifetimeMs: 43_200_000, addresses: true, files: { keyMode: 0o640 } }]
  assert.deepEqual(set, { outputs })
  const wrong = readVClusterFile(testCli({ input: 'name: web\noutputs:\n  - {name: nginx, owner: root}\n' }).cli, '-')
  await assert.rejects(wrong, /-:3: outputs\[0\]\.owner is no key; there are name, lifetimeMs, /)
})

test('what does not belong into a folder is named', async (t) => {
  const refused = async (folder: string): Promise<string> =>
    readVClusterFile(testCli({}).cli, folder).then(
      () => assert.fail('it was taken'),
      (error: unknown) => (error instanceof Failure ? error.message : String(error)),
    )
  assert.match(await refused(folderWith(t, { 'files/a': '' })), /There is no vcluster\.yaml/)
  const linked = folderWith(t, { 'vcluster.yaml': '', 'files/a': '' })
  fs.symlinkSync('/etc/shadow', path.join(linked, 'files/b'))
  assert.match(await refused(linked), /files\/b is a link or no file/)
  const both = folderWith(t, { 'vcluster.yaml': 'files: [{path: a, content: x}]', 'files/a': '' })
  assert.match(await refused(both), /vcluster\.yaml:1: files\[0\]\.content is also in/)
  const binary = folderWith(t, { 'vcluster.yaml': '', 'files/a': '' })
  fs.writeFileSync(path.join(binary, 'files/a'), Uint8Array.of(0xff, 0xfe))
  assert.match(await refused(binary), /files\/a is not UTF-8 text/)
})
