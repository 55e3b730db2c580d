// What docs/API.md tells a reader to type, typed: every `sh` block of the page, in order, with nothing but environment
// variables set beforehand.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { childEnvironment, repository } from '../process/child.ts'
import { journalEntries } from '../process/plane-records.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

const page = fs.readFileSync(path.join(repository, 'docs', 'API.md'), 'utf8')
const blocks = [...page.matchAll(/^```sh ?(\S*)\n([^]*?)^```$/gm)].map(([, name = '', text = '']) => ({ name, text }))
const script = (name: string): string =>
  blocks
    .filter((block) => block.name === name)
    .map(({ text }) => text)
    .join('')

const plane = sharedPlane()

type Typed = {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
  readonly folder: string
}

const type = (t: TestContext, text: string, env: Readonly<Record<string, string>>): Typed => {
  const folder = tempFolder(t)
  const found = [repository, path.dirname(process.execPath), process.env['PATH']].join(path.delimiter)
  const done = spawnSync('sh', ['-c', text], {
    cwd: folder,
    env: childEnvironment({ PATH: found, ...env }),
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { ...done, folder }
}

const hasPeers = (t: TestContext): boolean => withPeer(t, 'openssl') !== null && withPeer(t, 'curl') !== null

test('every shell block of docs/API.md is run here', () => {
  assert.deepEqual([...new Set(blocks.map(({ name }) => name))], ['curl-enroll', 'curl-operate'])
})

test('the page enrolls a machine with openssl and curl alone, confirms, renews and opens a channel', async (t) => {
  if (!hasPeers(t)) return
  const join = await plane().token('--node', 'gpu-001')
  const { status, stdout, stderr, folder } = type(t, script('curl-enroll'), { MUSTER_JOIN: join })
  assert.equal(status, 0, stdout + stderr)
  const answers = stdout.match(/\{[^}]*\}/g)?.map((text) => JSON.parse(text)) ?? []
  assert.deepEqual(
    answers.map(({ node_id: id, membership }) => [id, membership]),
    [
      ['gpu-001', 'active'],
      ['gpu-001', 'active'],
    ],
  )
  assert.match(fs.readFileSync(path.join(folder, 'channel.txt'), 'latin1'), /^HTTP\/1\.1 101 [^]*"type":"hello"/)
  const types = (await journalEntries(plane(), { node: 'gpu-001' })).map((entry) => entry.type)
  assert.deepEqual(
    types.filter((one) => /^(host|node)\.(enrolled|confirmed|renew)/.test(one)),
    ['host.enrolled', 'node.confirmed', 'node.renewed', 'node.renewal_confirmed'],
  )
})

test('the page sends nothing to a plane with another root', async (t) => {
  if (!hasPeers(t)) return
  const join = (await plane().token('--node', 'gpu-003')).replace(/sha256:[0-9a-f]{8}/, 'sha256:00000000')
  const { status, folder } = type(t, script('curl-enroll'), { MUSTER_JOIN: join })
  assert.notEqual(status, 0)
  assert.deepEqual(fs.readdirSync(folder), ['root.pem'])
  assert.equal((await plane().api('GET', '/v1/nodes/gpu-003')).body.membership, 'registered')
})

test('the page operates a plane over its Unix socket, and checks its journal as the plane itself does', async (t) => {
  if (!hasPeers(t)) return
  const { status, stdout, stderr, folder } = type(t, script('curl-operate'), { MUSTER_DATA: plane().data })
  assert.equal(status, 0, stdout + stderr)
  const { body } = await plane().api('POST', '/v1/journal/verify')
  assert.equal(fs.readFileSync(path.join(folder, 'head.txt'), 'utf8').trim(), body.heads[0].hash)
  assert.equal((await plane().api('GET', '/v1/nodes/gpu-002')).body.membership, 'revoked')
  const more = JSON.parse(fs.readFileSync(path.join(folder, 'more.json'), 'utf8'))
  assert.equal(more.entries[0].entry.sequence, 3)
})
