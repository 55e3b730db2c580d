// What the command line says of this machine, without an agent and without a plane.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { runCli } from '#cli/kit/run-cli.ts'
import { testCli } from '../fakes/test-cli.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('read-hardware prints what the machine is recognised by, or writes it to a file for its agent', async (t) => {
  const printed = testCli({})
  assert.equal(await runCli(['agent', 'read-hardware', '-o', 'json'], printed.cli), 0)
  const report = JSON.parse(printed.stdout()) as { macs: string[]; facts: { cpu_cores: number } }
  assert.ok(Array.isArray(report.macs))
  assert.ok(report.facts.cpu_cores > 0)
  assert.match(
    printed.stderr(),
    /^(passed over: .*\n)?next: (\.\/muster node enroll ID --profile hpc-diskless --mac |This machine has no network card)/,
  )

  const file = path.join(tempFolder(t), 'hardware.json')
  const written = testCli({})
  assert.equal(await runCli(['agent', 'read-hardware', '--out', file], written.cli), 0)
  assert.equal(written.stdout(), '')
  assert.match(written.stderr(), /written to .*hardware\.json, which only its owner can read/)
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  // Not the same addresses: other tests make network interfaces on this machine meanwhile.
  assert.deepEqual(Object.keys(JSON.parse(fs.readFileSync(file, 'utf8')) as object), Object.keys(report))

  const refused = testCli({})
  const nowhere = path.join(file, 'below-a-file')
  assert.equal(await runCli(['agent', 'read-hardware', '--out', nowhere], refused.cli), exitCodes.notAllowed)
  assert.match(refused.stderr(), /cannot be written[\s\S]*Run this as root/)
})

test('serial numbers are readable by the group of a folder that others cannot enter, and by nobody else', async (t) => {
  if (withPeer(t, 'root') === null) return
  const someGroup = 1
  const cases = [
    { folderMode: 0o750, fileMode: 0o640, gid: someGroup, says: 'owner and its group' },
    { folderMode: 0o755, fileMode: 0o600, gid: 0, says: 'owner' },
    { folderMode: 0o1777, fileMode: 0o600, gid: 0, says: 'owner' },
  ]
  for (const { folderMode, fileMode, gid, says } of cases) {
    const folder = tempFolder(t)
    fs.chownSync(folder, 0, someGroup)
    fs.chmodSync(folder, folderMode)
    const file = path.join(folder, 'hardware.json')
    const { cli, stderr } = testCli({})
    assert.equal(await runCli(['agent', 'read-hardware', '--out', file], cli), 0)
    const stats = fs.statSync(file)
    assert.deepEqual([stats.mode & 0o777, stats.uid, stats.gid], [fileMode, 0, gid], folderMode.toString(8))
    assert.match(stderr(), new RegExp(`which only its ${says} can read`))
  }
})
