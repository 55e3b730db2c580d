// The backup drill of docs/RUNBOOKS.md, with the options that stand there: a backup becomes a plane that can be looked at.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { repository, startedCommand, startChild } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { runMuster } from '../process/run-muster.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const page = fs.readFileSync(path.join(repository, 'docs', 'RUNBOOKS.md'), 'utf8')
const [, drill = ''] = page.split('\n## Backup drill\n')

/** In the order of the page, each as its words. */
const commands = drill
  .replaceAll(/\\\n\s+/g, '')
  .split('\n')
  .filter((line) => /^ {7}(muster|export) /.test(line))
  .map((line) => line.trim().split(/ +/))

test('the backup drill of the runbooks works as it is written', async (t) => {
  const folder = tempFolder(t)
  const backup = path.join(folder, 'backup')
  const seal = path.join(folder, 'seal.key')
  fs.writeFileSync(seal, `${'5a'.repeat(32)}\n`, { mode: 0o600 })
  const sqlite = { MUSTER_STORE: 'sqlite' }
  const plane = await startPlane(t, { env: sqlite, args: ['--seal-key', seal] })
  assert.equal((await plane.api('POST', '/v1/tokens', { node: 'gpu-001' })).status, 201)
  const made = await runMuster(['store', 'backup', backup, '--seal-key', seal], {
    env: { ...sqlite, MUSTER_DATA: plane.data },
  })
  assert.equal(made.code, 0, made.stderr)
  const operatorKey = path.join(folder, 'operator.key')
  fs.copyFileSync(path.join(plane.data, 'admin.key'), operatorKey)
  await plane.stop()

  const places = { BACKUP: backup, FILE: seal, '/srv/drill': path.join(folder, 'drill'), OPERATOR_KEY: operatorKey }
  const inPlace = (word: string): string => {
    const [name = '', value] = word.split('=')
    const placeOf = (one: string): string => Object.entries(places).find(([written]) => written === one)?.[1] ?? one
    return value === undefined ? placeOf(name) : `${name}=${placeOf(value)}`
  }
  const [restore = [], start = [], exported = [], ...looks] = commands.map((words) => words.map(inPlace))
  assert.deepEqual([restore[2], start[1], exported[0], looks.length], ['restore', 'plane', 'export', 3])

  const restored = await runMuster(restore.slice(1))
  assert.equal(restored.code, 0, restored.stderr)
  const drilled = startChild(t, startedCommand, start.slice(1), {})
  const env = Object.fromEntries(exported.slice(1).map((word) => word.split('=')))
  const told = await eventually('the restored plane to answer', async () => {
    const said = await runMuster((looks[0] ?? []).slice(1), { env })
    return said.code === 0 ? said.stdout : null
  })
  assert.match(told, /gpu-001/)
  const [, verify = [], list = []] = looks
  assert.match((await runMuster(verify.slice(1), { env })).stdout, /^chain intact/)
  assert.match((await runMuster(list.slice(1), { env })).stdout, /enrollment_token\.created +gpu-001/)
  await drilled.stop()
})
