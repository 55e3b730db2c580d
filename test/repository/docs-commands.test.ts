// Every `muster` command that the documents tell a reader to type exists, with the options it is given there: in code spans, in indented blocks
// and in fenced ones.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { Command } from 'commander'
import { refusals } from '#domain/core/refusal-table.ts'
import { filesBelow, root } from '../../scripts/repository.ts'
import { testCli, wholeProgram } from '../fakes/test-cli.ts'

const documents = ['README.md', ...filesBelow(path.join(root, 'docs'), root).filter((file) => file.endsWith('.md'))]
const program = await wholeProgram(testCli({}).cli)

/** From code spans, indented lines and fenced commands: `muster node show ID`, up to what ends a command in a shell or a sentence. */
const commandsIn = (text: string): string[] => {
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span ?? '')
  const joined = text.replaceAll(/\\\n\s+/g, ' ')
  const fenced = [...joined.matchAll(/^ *```(?:sh|bash|shell|console)\n([^]*?)^ *```$/gm)].flatMap(([, block]) =>
    (block ?? '').split('\n'),
  )
  const lines = [...[...joined.matchAll(/^ {4}(.+)$/gm)].map(([, line]) => line ?? ''), ...fenced]
  return [...spans, ...lines].flatMap((code) =>
    [...code.matchAll(/(?:^|[\s|(;])(?:\.\/)?muster ((?:[a-z][\w-]*)[^|;)#>]*)/g)].map(([, command]) =>
      (command ?? '').trim(),
    ),
  )
}

const fault = (command: string): string | null => {
  const words = command.split(/\s+/)
  let at: Command = program
  while (words.length > 0) {
    const child = at.commands.find((one) => one.name() === words[0])
    if (child === undefined) break
    at = child
    words.shift()
  }
  if (at === program) return 'no such noun'
  if (at.commands.length > 0 && words.length > 0 && /^[a-z]/.test(words[0] ?? '')) return 'no such verb'
  const known = [...at.options, ...program.options]
  const unknown = words.filter(
    (word) =>
      /^--?[a-z]/.test(word) && !known.some(({ long, short }) => [long, short].includes(word.replace(/[=,].*$/, ''))),
  )
  return unknown.length === 0 || unknown.includes('--help') ? null : `no option ${unknown.join(', ')}`
}

for (const document of documents) {
  test(`every command in ${document} parses: in its text, in indented blocks and in fenced ones`, () => {
    const faults = commandsIn(fs.readFileSync(document, 'utf8')).flatMap((command) => {
      const what = fault(command)
      return what === null ? [] : [`muster ${command}: ${what}`]
    })
    assert.deepEqual(faults, [])
  })
}

test('every command a refusal names as the next step exists', () => {
  const named = Object.values(refusals).flatMap(({ next }) =>
    [...next.matchAll(/muster [a-z][^;,]*/g)].map(([all]) => all),
  )
  assert.ok(named.length > 30)
  assert.deepEqual(
    named.filter((command) =>
      commandsIn(`\`${command}\``)
        .map(fault)
        .some((what) => what !== null),
    ),
    [],
  )
})

test('a command that does not exist is found', () => {
  assert.deepEqual(commandsIn('run `muster node frobnicate ID`').map(fault), ['no such verb'])
  assert.deepEqual(commandsIn('    muster node show ID --loudly   # why').map(fault), ['no option --loudly'])
  assert.deepEqual(commandsIn('```console\n$ muster node show ID --loudly\n```').map(fault), ['no option --loudly'])
})
