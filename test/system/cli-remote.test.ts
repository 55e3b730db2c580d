// The command line and a plane elsewhere: TLS, verified by the roots that were carried over, and a key of one's own.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { runMuster } from '../process/run-muster.ts'
import { startPlane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('a plane elsewhere is asked over TLS, and not at all where its roots are not trusted', async (t) => {
  const plane = await startPlane(t, { args: ['--operator-tls'] })
  assert.match(plane.operatorUrl, /^https:/)
  const folder = tempFolder(t)
  const [ca, key] = [path.join(folder, 'roots.pem'), path.join(folder, 'viewer.key')]
  fs.writeFileSync(ca, (await plane.muster('ca', 'bundle')).stdout)
  fs.writeFileSync(key, (await plane.muster('key', 'create', 'eve', '--role', 'viewer')).stdout, { mode: 0o600 })

  const there = ['--url', plane.operatorUrl, '--key-file', key]
  const elsewhere = { env: { MUSTER_DATA: folder } }
  const shown = await runMuster([...there, '--ca', ca, 'domain', 'show', '-o', 'json'], elsewhere)
  assert.equal(shown.code, 0, shown.stderr)
  assert.equal(JSON.parse(shown.stdout).name, plane.domain)

  const forbidden = await runMuster([...there, '--ca', ca, 'token', 'create', '--node', 'gpu-001'], elsewhere)
  assert.equal(forbidden.code, 4)
  assert.match(forbidden.stderr, /ROLE_FORBIDDEN/)

  const untrusted = await runMuster([...there, 'domain', 'show'], elsewhere)
  assert.notEqual(untrusted.code, 0)
  assert.equal(untrusted.stdout, '')
  assert.match(untrusted.stderr, /--ca/)
})
