import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as path from 'node:path'
import { test } from 'node:test'
import { text } from 'node:stream/consumers'

const bytes = 3_000_000

const command = (rest: string): string => `
  import { endIfIdle } from ${JSON.stringify(path.join(import.meta.dirname, 'this-process.ts'))}
  process.exitCode = 3
  process.stdout.write('x'.repeat(${bytes}))
  ${rest}
  endIfIdle()`

const run = async (script: string): Promise<{ readonly code: unknown; readonly written: number }> => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  // It reads only after the pipe is full, and the command has long come to its end.
  await once(child.stdout, 'readable')
  const written = await text(child.stdout)
  const [code] = (await ended) as unknown[]
  return { code, written: written.length }
}

test('a command that ends at once has written all of its output, and has its exit code', async () => {
  assert.deepEqual(await run(command('')), { code: 3, written: bytes })
})

test('what still has something to do is not ended', async () => {
  const later = `setTimeout(() => { process.stdout.write('y'); process.exitCode = 4 }, 1)`
  assert.deepEqual(await run(command(later)), { code: 4, written: bytes + 1 })
})
