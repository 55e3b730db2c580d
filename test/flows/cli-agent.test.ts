// What the command line says of this machine, without an agent and without a plane.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { runCli } from '#cli/kit/run-cli.ts'
import { testCli } from '../fakes/test-cli.ts'
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
  assert.match(written.stderr(), /written to .*hardware\.json/)
  // Not the same addresses: other tests make network interfaces on this machine meanwhile.
  assert.deepEqual(Object.keys(JSON.parse(fs.readFileSync(file, 'utf8')) as object), Object.keys(report))

  const refused = testCli({})
  const nowhere = path.join(file, 'below-a-file')
  assert.equal(await runCli(['agent', 'read-hardware', '--out', nowhere], refused.cli), exitCodes.notAllowed)
  assert.match(refused.stderr(), /cannot be written[\s\S]*Run this as root/)
})
