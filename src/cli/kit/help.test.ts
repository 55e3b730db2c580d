import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { testCli, wholeProgram } from '../../../test/fakes/test-cli.ts'
import { exitCodes } from './exit-codes.ts'
import { runCli } from './run-cli.ts'

const commandsBelow = (command: Command, path: readonly string[]): (readonly string[])[] => [
  path,
  ...command
    .createHelp()
    .visibleCommands(command)
    .flatMap((child) => commandsBelow(child, [...path, child.name()])),
]

const helpOf = async (path: readonly string[]): Promise<string> => {
  const { cli, stdout } = testCli({})
  assert.equal(await runCli([...path, '--help'], cli), exitCodes.ok)
  return stdout()
}

test('the help of every command has examples, and they name commands and options that there are', async () => {
  const program = await wholeProgram(testCli({}).cli)
  const all = commandsBelow(program, [])
  assert.ok(all.length > 40)
  for (const path of all) {
    const examples = (await helpOf(path)).split(/\n(?:Examples|A first look):\n/)[1]?.split('\n\n')[0] ?? ''
    const called = [...examples.matchAll(/\.\/muster ([^|#)\n]*)/g)].map(([, words = '']) => words.trim().split(/\s+/))
    assert.ok(called.length > 0, `no example for ${path.join(' ')}`)
    for (const words of called) {
      const command = words.reduce((at, word) => at.commands.find((one) => one.name() === word) ?? at, program)
      assert.notEqual(command, program, `an example of ${path.join(' ')}: ${words.join(' ')}`)
      const known = [...command.options, ...program.options].flatMap(({ long, short }) => [long, short])
      for (const word of words.filter((one) => /^--?[a-z]/.test(one))) assert.ok(known.includes(word), word)
    }
  }
})

test('help calls the program as its reader does, so that examples can be pasted', async () => {
  assert.match(await helpOf(['node', 'show']), /Usage: \.\/muster node show[^]*\n {2}\.\/muster node show gpu-001\n/)
})

test('a command that only makes a plan names the exit code that says so', async () => {
  assert.match(await helpOf(['node', 'purge']), /\nExit code 10: nothing was done, a plan was made\n/)
  assert.match(await helpOf(['node', 'revoke']), /\nExit code 10: given several nodes, nothing was done, a plan/)
})

test('a wrong command line always says what to type next', async () => {
  const wrong = [
    ['nonsense'],
    ['node', 'enroll', '--batch', '/nowhere/nodes.csv'],
    ['ca', 'import', '/nowhere/ca.pem'],
    ['journal', 'list', '--last', '0'],
    ['demo', '--nodes', '0'],
    ['token', 'create', '--node', 'GPU 001'],
    ['node', 'enroll', 'GPU-001'],
  ]
  for (const args of wrong) {
    const { cli, stdout, stderr } = testCli({})
    assert.equal(await runCli(args, cli), exitCodes.usage, args.join(' '))
    assert.match(stderr(), /^next: \S/m)
    assert.equal(stdout(), '')
  }
})
