import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { musterCommand, startedCommand } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { mismatch, missing } from './match-lines.ts'
import { parseTranscript } from './parse-transcript.ts'
import { runTranscript } from './run-transcript.ts'
import { cloneFolder } from './clone-folder.ts'
import { shortSleeps } from './short-sleeps.ts'

const here = import.meta.dirname
/** Begins with the clone, and is run from its sources. The others need not pay for that with every command. */
const fromSources = 'what-a-stranger-sees.md'
/** Its commands make tokens of SoftHSM. */
const withTokens = 'root-in-a-token.md'
/** Waits for certificates to end. */
const overMinutes = 'sixty-nodes.md'

for (const name of fs.readdirSync(here).filter((file) => file.endsWith('.md'))) {
  const text = fs.readFileSync(path.join(here, name), 'utf8')
  const title = /^# (.*)$/m.exec(text)?.[1] ?? name
  test(`transcript: ${title}`, async (t) => {
    const steps = parseTranscript(text)
    assert.ok(steps.length > 0)
    const command = name === fromSources ? musterCommand : startedCommand
    if (name === withTokens) {
      const module = withPeer(t, 'softhsm')
      if (module === null || withPeer(t, 'softhsm2-util') === null || withPeer(t, 'openssl') === null) return
      return runTranscript(t, name, steps, cloneFolder(t, command), undefined, { MUSTER_PKCS11_MODULE: module })
    }
    if (name !== overMinutes) return runTranscript(t, name, steps, cloneFolder(t, command))
    const fakeTime = withPeer(t, 'faketime')
    if (fakeTime === null) return
    const fast = shortSleeps(tempFolder(t), command, fakeTime)
    await runTranscript(t, name, steps, cloneFolder(t, fast.command), undefined, fast.environment)
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

const processesIn = (folder: string): readonly string[] =>
  fs.readdirSync('/proc').filter((name) => {
    try {
      return fs.readlinkSync(`/proc/${name}/cwd`) === folder
    } catch {
      return false
    }
  })

test('a command that does not end in time is named with its line, and every process of it is ended', async (t) => {
  const limits = { stepMs: 3000, endMs: 3000 }
  const folder = cloneFolder(t, startedCommand)
  const stuck: readonly { body: string; says: RegExp; left: RegExp }[] = [
    {
      body: '$ true\n$ sleep 4711',
      says: /x:3: \$ sleep 4711 still runs after 3000 ms:\n  sleep 4711$/m,
      left: /^$/,
    },
    // Such a process has the output of its command and is not of its group any more.
    {
      body: '$ setsid sleep 4712 & true',
      says: /x:2: \$ setsid sleep 4712 & true still runs after 3000 ms:\n  sleep 4712$/m,
      left: /^$/,
    },
    {
      body: `$ trap '' TERM; while sleep 0.1; do :; done`,
      says: /x:2: \$ trap .* still runs after 3000 ms:$/m,
      left: /x:2: \$ trap .* to end after SIGTERM: not within 3000 ms/,
    },
    // Asked once to stop, it stops in its own time.
    {
      body: `$ trap 'trap "exit 9" TERM; sleep 0.3; echo stopped > stopped; exit 0' TERM; while sleep 0.1; do :; done`,
      says: /still runs after 3000 ms:$/m,
      left: /^$/,
    },
    { body: '$ sleep 4713 &\nready', says: /it did not say within 3000 ms: .*ready/s, left: /^$/ },
    { body: '$ exit 0 &\nready', says: /it has ended, and did not say/, left: /^$/ },
  ]
  for (const { body, says, left } of stuck) {
    const ends: (() => void | Promise<void>)[] = []
    const scope = { after: (end: () => void | Promise<void>) => void ends.push(end) } as Scope
    const steps = parseTranscript('```console\n' + body + '\n```')
    let failure = ''
    try {
      await assert.rejects(runTranscript(scope, 'x', steps, folder, limits), matchesCause(says), body)
    } finally {
      for (const end of ends)
        await Promise.resolve(end()).catch((error: AggregateError) => (failure = error.errors.join()))
    }
    assert.match(failure, left, body)
  }
  await eventually('processes of the commands to end', () => processesIn(folder).length === 0)
  assert.ok(fs.existsSync(path.join(folder, 'stopped')), 'a command got more than one signal')
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
