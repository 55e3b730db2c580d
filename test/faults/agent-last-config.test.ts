import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openConfigKeeper } from '#agent/channel/last-config.ts'
import type { PlaneConfig } from '#wire/channel/channel.ts'
import { tempFolder } from '../process/temp-folder.ts'

const config: PlaneConfig = {
  revision: 7,
  vcluster: 'training',
  profile: {
    name: 'gpu-cloud',
    key_storage: 'file',
    key_types: ['p256'],
    lifetime_ms: 86_400_000,
    renew_from: 0.5,
    renew_to: 0.6,
  },
  endpoints: { id: 'runtime', revision: 1, runtime: ['https://a.example'], stream: ['wss://a.example'] },
}

test('a configuration is in force even if it cannot be written, and a retry writes it once that works', (t) => {
  const folder = tempFolder(t)
  const keeper = openConfigKeeper(folder)
  const inTheWay = path.join(folder, 'config.json.new')
  fs.mkdirSync(inTheWay)
  assert.equal(keeper.keep(config).persisted, false)
  assert.deepEqual([keeper.current(), keeper.isPersisted(), keeper.retry().persisted], [config, false, false])
  assert.equal(openConfigKeeper(folder).current(), null)
  fs.rmdirSync(inTheWay)
  assert.deepEqual([keeper.retry().persisted, keeper.isPersisted()], [true, true])
  assert.deepEqual(openConfigKeeper(folder).current(), config)
})

test('what an earlier enrollment left is forgotten on disk too', (t) => {
  const folder = tempFolder(t)
  const keeper = openConfigKeeper(folder)
  keeper.keep(config)
  assert.equal(keeper.forget().persisted, true)
  assert.deepEqual([keeper.current(), fs.readdirSync(folder)], [null, []])
})

test('what a node ran under before it was recovered stays in force, also on disk, until the plane sends another', (t) => {
  const folder = tempFolder(t)
  const keeper = openConfigKeeper(folder)
  const overlay = {
    vcluster_revision: 3,
    policy: { enforcement_mode: 'observe' as const, exec_whitelist: [], shell_whitelist: [], regulated: false },
    files: [{ path: 'etc/app.conf', mode: 0o644, content: 'x' }],
    services: [{ name: 'app', command: ['app', '{overlay}/etc/app.conf'] }],
    detect_drift: true,
  }
  keeper.keep({ ...config, overlay, wireguard: null })
  assert.equal(keeper.outdate().persisted, true)
  assert.deepEqual(openConfigKeeper(folder).current(), { ...config, revision: 0, overlay, wireguard: null })
})

test('a field that an older plane does not send keeps its value; a new enrollment starts with nothing', (t) => {
  const folder = tempFolder(t)
  const keeper = openConfigKeeper(folder)
  const policy = {
    enforcement_mode: 'observe' as const,
    exec_whitelist: [],
    shell_whitelist: [],
    regulated: false,
  }
  const overlay = { vcluster_revision: 3, policy, files: [], services: [], detect_drift: true }
  keeper.keep({ ...config, overlay, wireguard: null })
  keeper.keep({ ...config, revision: 9 })
  assert.deepEqual(openConfigKeeper(folder).current(), { ...config, revision: 9, overlay, wireguard: null })
  keeper.forget()
  keeper.keep(config)
  assert.deepEqual(openConfigKeeper(folder).current(), config)
})
