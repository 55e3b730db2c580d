// A hostile agent at the helper's socket: it cannot make the helper grow, block or end, and every request it makes is answered.

import assert from 'node:assert/strict'
import * as net from 'node:net'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { openHelperClient } from '#agent/helper/client.ts'
import { startHelper } from '#agent/helper/main.ts'
import { helperCodes, longestRequest, verbs } from '#agent/helper/verbs.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { testTrust } from '../fakes/helped-host.ts'
import { hostOfPrograms } from '../fakes/host-of-programs.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'

const helperAt = async (t: TestContext, host = hostOfPrograms(t, systemClock.nowMs())): Promise<string> => {
  const socket = path.join(host.folder, 'run', 'socket')
  const helper = await startHelper(
    { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust },
    {
      agentToml: host.agentToml,
      socket: { path: socket },
      agentUser: null,
      stateFolder: path.join(host.folder, 'state'),
    },
  )
  assert.ok('close' in helper, JSON.stringify(helper))
  cleanup(t, () => helper.close())
  return socket
}

type Raw = {
  readonly socket: net.Socket
  /** What the helper has said so far, a line each. */
  lines(): string[]
  readonly closed: Promise<void>
}

const connect = async (t: TestContext, place: string): Promise<Raw> => {
  const socket = net.connect(place)
  let text = ''
  socket.setEncoding('utf8').on('data', (more: string) => (text += more))
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  cleanup(t, () => void socket.destroy())
  await new Promise((resolve) => socket.once('connect', resolve))
  return { socket, lines: () => text.split('\n').slice(0, -1), closed }
}

const codeIn = (line: string): string | null =>
  (JSON.parse(line) as { refused?: { code: string } }).refused?.code ?? null

/** Whoever else is connected, the helper answers the next one. */
const stillAnswers = async (socket: string): Promise<void> => {
  const client = openHelperClient(systemTimers, socket, () => null)
  try {
    assert.equal((await within('hello', 10_000, client.ask('hello', {}))).fault, null)
  } finally {
    client.close()
  }
}

const someJson = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc
    .record(
      {
        id: fc.oneof(fc.integer(), fc.constant(1), fc.string(), fc.double()),
        verb: fc.oneof(fc.constantFrom(...Object.keys(verbs), '__proto__', 'constructor'), fc.string()),
        body: fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant({}), fc.constant({ name: 'web' })),
        more: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value)),
)
const someLine = fc.oneof(
  someJson,
  fc.string({ maxLength: 200 }).map((text) => text.replaceAll('\n', ' ')),
)

test('a blank line counts like any other that is no request: it is answered, and who does not read is read no further', async (t) => {
  const socket = await helperAt(t)
  const raw = await connect(t, socket)
  raw.socket.write(`${'\n'.repeat(1000)} \t\n{"id":1,"verb":"hello","body":{}}\n`)
  await eventually('every answer', () => raw.lines().length === 1002)
  assert.deepEqual(
    raw
      .lines()
      .map(codeIn)
      .filter((code) => code !== null),
    Array(1001).fill('BAD_REQUEST'),
  )
  const deaf = net.connect(socket)
  cleanup(t, () => void deaf.destroy())
  deaf.on('error', () => {})
  deaf.pause()
  let taken = false
  deaf.write(Buffer.alloc(2 << 20, '\n'), () => (taken = true))
  for (let round = 0; round < 20; round++) await stillAnswers(socket)
  assert.equal(taken, false, 'what the helper has not read stays with the one who sent it')
})

test('every line is answered or refused once, with a code of the list, whatever is in it', async (t) => {
  const socket = await helperAt(t)
  await fc.assert(
    fc.asyncProperty(fc.array(someLine, { minLength: 1, maxLength: 20 }), async (lines) => {
      const peer = await connect(t, socket)
      peer.socket.write(lines.map((line) => `${line}\n`).join(''))
      await eventually('every line to be answered', () => peer.lines().length >= lines.length, { everyMs: 2 })
      peer.socket.destroy()
      await peer.closed
      assert.equal(peer.lines().length, lines.length)
      for (const line of peer.lines()) {
        const code = codeIn(line)
        assert.ok(code === null || helperCodes.some((known) => known === code), line)
      }
    }),
    { numRuns: 60 },
  )
  await stillAnswers(socket)
})

test('bytes that are no text, and JSON that is nested without end, are refused', async (t) => {
  const socket = await helperAt(t)
  const peer = await connect(t, socket)
  const noise = Buffer.alloc(65_536)
  for (let at = 0; at < noise.length; at++) noise[at] = (at * 7919) % 251 === 10 ? 0 : (at * 7919) % 251
  peer.socket.write(Buffer.concat([noise, Buffer.from('\n')]))
  peer.socket.write(`${'['.repeat(2_000_000)}\n`)
  peer.socket.write(`${'{"a":'.repeat(400_000)}1${'}'.repeat(400_000)}\n`)
  peer.socket.write(`{"id": 1, "verb": "hello", "body": ${'['.repeat(500_000)}${']'.repeat(500_000)}}\n`)
  await eventually('four answers', () => peer.lines().length === 4)
  assert.deepEqual(peer.lines().map(codeIn), Array(4).fill('BAD_REQUEST'))
  await stillAnswers(socket)
})

test('a line without an end is cut off at its limit', async (t) => {
  const socket = await helperAt(t)
  const peer = await connect(t, socket)
  const before = process.memoryUsage().arrayBuffers
  const piece = Buffer.alloc(1 << 20, 'x')
  let sent = 0
  const push = (): void => {
    while (!peer.socket.destroyed && sent < 64 * piece.length) {
      sent += piece.length
      if (!peer.socket.write(piece)) return void peer.socket.once('drain', push)
    }
  }
  push()
  await within('the connection to be closed', 20_000, peer.closed)
  assert.ok(sent < 64 * piece.length || peer.socket.destroyed)
  // The words may be lost with a connection that is closed while it is written to.
  assert.ok(peer.lines().every((line) => codeIn(line) === 'TOO_LONG'))
  assert.ok(process.memoryUsage().arrayBuffers - before < 16 * longestRequest)
  await stillAnswers(socket)
})

test('one who asks and does not read is not read from either, and keeps nobody else out', async (t) => {
  const socket = await helperAt(t)
  const deaf = net.connect(socket)
  cleanup(t, () => void deaf.destroy())
  deaf.on('error', () => {})
  deaf.pause()
  const requests = Buffer.from('{"id": 1, "verb": "hello", "body": {}}\n'.repeat(20_000))
  let taken = false
  deaf.write(requests, () => (taken = true))
  for (let round = 0; round < 20; round++) await stillAnswers(socket)
  assert.equal(taken, false, 'what the helper has not read stays with the one who sent it')
})

test('more connections than it takes are refused, and free again when they end', async (t) => {
  const socket = await helperAt(t)
  const taken = await Promise.all(Array.from({ length: 4 }, () => connect(t, socket)))
  const more = await Promise.all(Array.from({ length: 6 }, () => connect(t, socket)))
  await Promise.all(more.map(({ closed }) => within('a further connection to be closed', 10_000, closed)))
  for (const { lines } of more) assert.deepEqual(lines().map(codeIn), ['BUSY'])
  taken[0]?.socket.destroy()
  await eventually('a connection to be free', () => stillAnswers(socket).then(() => true))
})

test('slow checks hold up no other request of their connection, however many there are', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const user = process.geteuid?.() === 0 ? 'nobody' : String(process.geteuid?.())
  const names = Array.from({ length: 40 }, (_, at) => `slow${at}`)
  const check = (name: string): string =>
    `[checks.${name}]\nexecutable = "/bin/sleep"\nuser = "${user}"\narguments = ["600"]\n`
  host.allow(`${names.map(check).join('')}[reloads.web]\ncommand = ["/bin/true"]\n`)
  const client = openHelperClient(systemTimers, await helperAt(t, host), () => null)
  const slow = names.map((name) =>
    client.ask('check.run', { name, arguments: [] }).then(
      () => 'done',
      ({ code }: { code: string }) => code,
    ),
  )
  assert.equal((await within('hello', 10_000, client.ask('hello', {}))).fault, null)
  await within('an output', 10_000, client.ask('output.write', host.request()))
  await within('a reload', 10_000, client.ask('reload', { name: 'web' }))
  client.close()
  const said = await Promise.all(slow)
  assert.deepEqual([said.filter((code) => code === 'BUSY').length, new Set(said)], [8, new Set(['BUSY', 'NO_HELPER'])])
})

test('the socket is for one user, and a folder that others can change is refused', async (t) => {
  const socket = await helperAt(t)
  assert.equal(fs.statSync(socket).mode & 0o777, 0o600)
  const host = hostOfPrograms(t, systemClock.nowMs())
  const open = path.join(host.folder, 'open')
  fs.mkdirSync(open)
  fs.chmodSync(open, 0o777)
  const options = { agentToml: host.agentToml, agentUser: null }
  const refusal = await startHelper(
    { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust },
    { ...options, socket: { path: path.join(open, 'socket') }, stateFolder: path.join(host.folder, 'state') },
  )
  assert.ok('code' in refusal && refusal.code === 'PATH_UNSAFE', JSON.stringify(refusal))
  assert.match(refusal.message, /open can be written by other users/)
  const stateless = await startHelper(
    { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog, trust: testTrust },
    { ...options, socket: { path: path.join(host.folder, 'run', 'socket') }, stateFolder: open },
  )
  assert.match('code' in stateless ? stateless.message : '', /cannot keep its state in .*: .*open can be written/)
})
