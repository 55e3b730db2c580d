import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { musterCommand, startedCommand } from '../process/child.ts'
import { mismatch, missing } from './match-lines.ts'
import { parseTranscript } from './parse-transcript.ts'
import { runTranscript } from './run-transcript.ts'
import { cloneFolder } from './clone-folder.ts'

const here = import.meta.dirname
/** Begins with the clone, and is run from its sources. The others need not pay for that with every command. */
const fromSources = 'what-a-stranger-sees.md'

for (const name of fs.readdirSync(here).filter((file) => file.endsWith('.md'))) {
  const text = fs.readFileSync(path.join(here, name), 'utf8')
  const title = /^# (.*)$/m.exec(text)?.[1] ?? name
  test(`transcript: ${title}`, async (t) => {
    const steps = parseTranscript(text)
    assert.ok(steps.length > 0)
    const command = name === fromSources ? musterCommand : startedCommand
    await runTranscript(t, name, steps, cloneFolder(t, command))
  })
}

const matchesCause = (shape: RegExp) => (error: Error) => shape.test(String(error.cause))

test('a transcript that is not true fails', async (t) => {
  const folder = cloneFolder(t, startedCommand)
  const run = (body: string) => runTranscript(t, 'x', parseTranscript('```console\n' + body + '\n```'), folder)
  await run('$ printf "one\\ntwo 17\\n"; exit 3\none\ntwo {{\\d+}}\n[exit 3]')
  await assert.rejects(run('$ echo two\none'), matchesCause(/standard output/))
  await assert.rejects(run('$ echo one; echo two\none'), matchesCause(/nothing more/))
  await assert.rejects(run('$ true\none'), matchesCause(/said no more/))
  await assert.rejects(run('$ false'), matchesCause(/exit code/))
  await assert.rejects(run('$ echo x >&2\n2> y'), matchesCause(/standard error/))
})

test('patterns match whole lines, and only what is in braces is a pattern', () => {
  assert.equal(mismatch(['a.c {{\\d+}} (x)'], ['a.c 12 (x)']), null)
  assert.notEqual(mismatch(['a.c'], ['abc']), null)
  assert.notEqual(mismatch(['{{\\d+}}'], ['12 x']), null)
  assert.equal(mismatch(['a', '...', 'z'], ['a', 'b', 'c', 'z']), null)
  assert.equal(mismatch(['...'], []), null)
  assert.notEqual(mismatch(['...', 'z'], ['a', 'z', 'b']), null)
  assert.equal(missing(['b'], ['a', 'b', 'c']), null)
  assert.notEqual(missing(['c', 'b'], ['a', 'b', 'c']), null)
})
