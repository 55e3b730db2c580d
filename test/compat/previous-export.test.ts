// An export file that a release before this one wrote is restored by this one.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { activeNode } from '../process/active-node.ts'
import { startedCommand } from '../process/child.ts'
import { runMuster } from '../process/run-muster.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { commandOf, previousReleases } from './previous-release.ts'

// 0.3.0 replaced export files by copies and backups.
const withExports = previousReleases().filter(({ version }) => version.startsWith('0.2.'))
assert.notEqual(withExports.length, 0)

for (const release of withExports) {
  const commandBefore = commandOf(release)

  test(`an export file of ${release.version} becomes a plane with its nodes, its operators and its journal`, async (t) => {
    const command = await commandBefore(t)
    if (command === null) return
    const env = { MUSTER_STORE: 'sqlite' }
    const old = await startPlane(t, { command, env })
    await activeNode(old, 'gpu-001')
    await old.api('POST', '/v1/nodes', { id: 'gpu-002' })
    await old.api('POST', '/v1/nodes/gpu-002/revoke', { reason: 'stolen' })
    await old.stop()
    const folder = tempFolder(t)
    const file = path.join(folder, 'domain.export')
    const exporting = ['store', 'export', file, '--data', old.data]
    execFileSync(command, exporting, { env: { ...process.env, ...env }, stdio: 'pipe' })

    const data = path.join(folder, 'data')
    const sealKey = path.join(old.data, 'seal.key')
    const args = ['store', 'restore', file, '--store', 'sqlite', '--data', data, '--seal-key', sealKey, '-o', 'json']
    const restored = await runMuster(args, { env })
    assert.equal(restored.code, 0, restored.stderr)
    const { heads, counts } = JSON.parse(restored.stdout) as {
      heads: { hash: string }[]
      counts: Record<string, number>
    }
    assert.deepEqual([counts['node'], counts['key-claim']], [2, 1])

    fs.copyFileSync(path.join(old.data, 'admin.key'), path.join(data, 'admin.key'))
    const plane = await old.restart({ command: startedCommand, data, env: { ...env, MUSTER_SEAL_KEY: sealKey } })
    assert.equal(plane.rootFingerprint, old.rootFingerprint)
    const journal = await plane.muster('journal', 'export')
    assert.equal(journal.code, 0, journal.stderr)
    for (const { hash } of heads) assert.ok(journal.stdout.includes(hash), hash)
    assert.equal((await plane.api('GET', '/v1/nodes/gpu-002')).body.membership, 'revoked')
  })
}
