import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '../../test/process/temp-folder.ts'
import { startBounded } from './bounded-process.ts'
import { whyNotStarted } from './not-started.ts'

test('a program that cannot be started says what is missing', async (t) => {
  const folder = tempFolder(t)
  const script = path.join(folder, 'script')
  fs.writeFileSync(script, '#!/nowhere/python3\n', { mode: 0o755 })
  const whyOf = async (program: string): Promise<string> => {
    const run = await startBounded({ command: [program], env: {}, withinMs: 10_000 }).result
    return run.kind === 'not-started' ? run.why : run.kind
  }
  assert.equal(await whyOf('/nowhere/worker'), 'there is no program /nowhere/worker on this machine: ENOENT')
  assert.equal(await whyOf(script), `${script} is there, but not the program that its first line names: ENOENT`)
  fs.chmodSync(script, 0o644)
  assert.equal(await whyOf(script), `${script} may not be executed by its user: EACCES`)
  const missing = Object.assign(new Error('spawn'), { code: 'ENOENT' })
  assert.equal(whyNotStarted(missing, '/bin/true', '/nowhere'), 'there is no folder /nowhere')
})
