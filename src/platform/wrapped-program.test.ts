import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { startWrapped } from './wrapped-program.ts'

const wrapped = async (command: string, args: readonly string[] = []) => {
  const said: string[] = []
  const { ended } = startWrapped(command, args, {}, (why) => void said.push(why))
  return { code: await ended, said: said.join() }
}

test('a program that cannot be started is a 127 with the reason, whichever way it comes, and leaves no listener', async () => {
  const before = process.listenerCount('SIGTERM')
  for (const [command, why, ...args] of [
    ['./no-such-program', /ENOENT/],
    ['/etc/passwd/x', /ENOTDIR/],
    ['x'.repeat(5000), /ENAMETOOLONG/],
    ['true', /E2BIG/, 'x'.repeat(4_000_000)],
    ['true', /null bytes/, 'a\0b'],
  ] as const) {
    const { code, said } = await wrapped(command, args)
    assert.equal(code, 127)
    assert.match(said, why)
    assert.equal(process.listenerCount('SIGTERM'), before)
  }
})

test('a program ends with its code, and one that a signal has ended with 128 and its number', async () => {
  assert.equal((await wrapped('sh', ['-c', 'exit 7'])).code, 7)
  assert.equal((await wrapped('sh', ['-c', 'kill -KILL $$'])).code, 137)
})

test(
  'signals that may not be sent to a program with other rights are said, and end nobody',
  { skip: process.getuid?.() !== 0 },
  () => {
    const program = `import('${import.meta.resolve('./wrapped-program.ts')}').then(async ({ startWrapped }) => {
      const program = startWrapped('sleep', ['1'], {}, (why) => console.log(why))
      process.setuid(65534)
      for (let at = 0; at < 2; at++) {
        process.kill(process.pid, 'SIGUSR2')
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      console.log(await program.ended)
    })`
    const ran = spawnSync(process.execPath, ['--eval', program], { encoding: 'utf8', timeout: 60_000 })
    assert.deepEqual([ran.stdout, ran.stderr, ran.status], ['kill EPERM\nkill EPERM\n0\n', '', 0])
  },
)
