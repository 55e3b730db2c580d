// Where the root is offline, the authority of workers comes from it by the same ceremony as that of nodes.

import assert from 'node:assert/strict'
import * as path from 'node:path'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { cluster } from '../fakes/service-accounts.ts'
import { rawWorker } from '../process/raw-worker.ts'
import { runMuster } from '../process/run-muster.ts'
import { startPlane } from '../process/start-plane.ts'
import { storeEnvironment } from '../process/store-under-test.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('an authority of workers is requested, signed where the root is, and imported', async (t) => {
  const home = tempFolder(t)
  const [data, stick] = ['data', 'stick'].map((name) => path.join(home, name)) as [string, string]
  fs.mkdirSync(stick, { mode: 0o700 })
  const env = await storeEnvironment(t, data)
  const made = await runMuster(['ca', 'init', '--data', data, '--root-out', stick], { env })
  assert.equal(made.code, 0, made.stderr)
  const plane = await startPlane(t, { data })
  const east = cluster()
  const { iss, aud, sub } = east
  const issuer = { name: 'east', iss, aud, sub, jwks: east.jwks(), types: [], vclusters: [] }
  assert.equal((await plane.api('POST', '/v1/worker-issuers', issuer)).status, 201)
  const worker = rawWorker(await plane.target(), east)
  assert.equal((await worker.enroll()).body.code, 'UNAVAILABLE')
  assert.match((await plane.muster('ca', 'show')).stdout, /muster ca request --workers/)

  const request = await plane.muster('ca', 'request', '--workers')
  assert.equal((await plane.muster('ca', 'request', '--workers')).stdout, request.stdout)
  const root = ['--root-key', path.join(stick, 'root.key'), '--root-cert', path.join(stick, 'root.crt')]
  const signed = await runMuster(['ca', 'sign', ...root, '--request', '-'], { input: request.stdout })
  assert.equal(signed.code, 0, signed.stderr)
  const certificate = signed.stdout
  for (let time = 0; time < 2; time++) {
    const imported = await plane.api('POST', '/v1/ca/import', { certificate })
    assert.equal(imported.status, 200, JSON.stringify(imported.body))
  }
  assert.equal((await worker.enroll()).status, 200)
  const { authorities } = (await plane.api('GET', '/v1/ca')).body
  const signing = authorities
    .filter(({ signing: is }: { signing: boolean }) => is)
    .map(({ role }: { role: string }) => role)
  assert.deepEqual(signing.sort(), ['issuing', 'recovery', 'workers-issuing'])
})
