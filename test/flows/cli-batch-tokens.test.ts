import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { setUpCli, type CliSetup } from './cli-setup.ts'

/** More than a list has in one page. */
const many = process.env['MUSTER_LONG'] === '1' ? 10_000 : 1010

const csvOf = (ids: readonly string[]): string => ['id,rack', ...ids.map((id) => `${id},R7`)].join('\n')
const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => `gpu-${at + 1}`)

/** Lines of the file without its comments: node, expiry, join string. */
const tokensIn = (file: string): string[][] =>
  fs
    .readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split('\t'))

const unusedTokens = async ({ store }: CliSetup, node: string): Promise<readonly string[]> =>
  (await store.tokens({ node, limit: 10 })).flatMap(({ value }) => (value.state.kind === 'unused' ? [value.hash] : []))

const enroll = (plane: CliSetup, file: string, ids: readonly string[], openHttp?: Cli['openHttp']) =>
  plane.musterWith(
    { input: csvOf(ids), ...(openHttp === undefined ? {} : { openHttp }) },
    ...['node', 'enroll', '--batch', '-', '--tokens', file],
  )

test(`${many} nodes get their tokens in one call, each registered, tagged and let in by its own secret`, async (t) => {
  const plane = await setUpCli(t)
  const file = path.join(plane.folder, 'tokens')
  const ids = numbered(many)
  const said = await enroll(plane, file, ids)
  assert.equal(said.code, exitCodes.ok, said.err)
  assert.match(
    said.err,
    new RegExp(`^${many} lines: ${many} tokens issued, 0 in .* already, 0 already there, 0 failed`, 'm'),
  )
  assert.equal(fs.statSync(file).mode & 0o7777, 0o600)
  const tokens = tokensIn(file)
  assert.deepEqual(tokens.map(([id]) => id).toSorted(), ids.toSorted())
  const last = tokens.at(-1)
  const node = (await plane.store.get('node', last?.[0] ?? ''))?.value
  assert.deepEqual([node?.membership.kind, node?.machine.tags], ['registered', ['rack:r7']])
  const secret = parseJoinString(last?.[2] ?? '')?.secret ?? ''
  assert.deepEqual(await unusedTokens(plane, node?.id ?? ''), [sha256Hex(secret)])
  assert.ok(!said.out.includes('enroll_') && !said.err.includes('enroll_'))

  const again = await enroll(plane, file, ids)
  assert.match(again.err, new RegExp(`holds the tokens of ${many} of ${many} lines`))
  assert.match(again.out, /^2 +gpu-1 +held +expires /m)
  assert.equal(tokensIn(file).length, many)
  const listed = async (...words: string[]) => (await plane.muster('token', 'list', ...words, '-o', 'name')).out
  assert.equal(new Set((await listed()).trim().split('\n')).size, many)
  assert.equal((await listed('--state', 'unused', '--node', 'gpu-1')).trim().split('\n').length, 1)
  assert.equal(await listed('--state', 'used'), '')
})

test('registration, tags and token of a line are one commit', async (t) => {
  const plane = await setUpCli(t)
  await enroll(plane, path.join(plane.folder, 'tokens'), ['gpu-1'])
  const entries = await plane.store.journal.read({ node: 'gpu-1', type: null, after: null, last: 10, limit: 10 })
  const types = entries.map(({ entry }) => entry.type)
  assert.deepEqual(types, ['node.registered', 'node.tagged', 'enrollment_token.created'])
  assert.equal(new Set(entries.map(({ entry }) => entry.atMs)).size, 1)
})

/** As when the plane dies, or the CLI is killed, between the commit and the file. */
const losingAnswers: Cli['openHttp'] = (target) => {
  const http = openHttpClient(target)
  return {
    ...http,
    async send(request) {
      const reply = await http.send(request)
      if (request.path === '/v1/tokens/batch') throw Object.assign(new Error('cut off'), { code: 'ECONNRESET' })
      return reply
    },
  }
}

test('a token whose answer was lost is withdrawn by the next run, and one made otherwise is not', async (t) => {
  const plane = await setUpCli(t)
  const file = path.join(plane.folder, 'tokens')
  await enroll(plane, file, ['gpu-1'])
  await plane.muster('token', 'create', '--node', 'gpu-2')
  const ids = ['gpu-1', 'gpu-2', 'gpu-3']
  const lost = await enroll(plane, file, ids, losingAnswers)
  assert.equal(lost.code, exitCodes.unavailable)
  assert.match(lost.err, /next: Run the same command again: it keeps the tokens in the file/)
  assert.equal(tokensIn(file).length, 1)
  const orphans = await unusedTokens(plane, 'gpu-3')
  assert.equal(orphans.length, 1)

  const again = await enroll(plane, file, ids)
  assert.equal(again.code, exitCodes.ok, again.err)
  assert.match(again.err, /holds the tokens of 1 of 3 lines/)
  assert.match(again.out, /gpu-3 +issued +replaces a token that was lost; expires/)
  assert.equal(tokensIn(file).length, 3)
  assert.equal((await unusedTokens(plane, 'gpu-2')).length, 2)
  const [now] = await unusedTokens(plane, 'gpu-3')
  assert.notEqual(now, orphans[0])
  assert.equal((await unusedTokens(plane, 'gpu-3')).length, 1)
})

test('a call that was delayed on its way withdraws no token that the file has', async (t) => {
  const plane = await setUpCli(t)
  const file = path.join(plane.folder, 'tokens')
  const delayed: string[] = []
  const delaying: Cli['openHttp'] = (target) => ({
    ...openHttpClient(target),
    async send({ body }) {
      delayed.push(body ?? '')
      throw Object.assign(new Error('cut off'), { code: 'ECONNRESET' })
    },
  })
  assert.equal((await enroll(plane, file, ['gpu-1'], delaying)).code, exitCodes.unavailable)
  assert.equal((await enroll(plane, file, ['gpu-1'])).code, exitCodes.ok)
  const [late = ''] = delayed
  const { body } = await plane.call('operator', 'POST', '/v1/tokens/batch', JSON.parse(late) as object)
  assert.equal(body.results[0].refused.code, 'ATTEMPT_OUTDATED')
  const secret = parseJoinString(tokensIn(file)[0]?.[2] ?? '')?.secret ?? ''
  assert.deepEqual(await unusedTokens(plane, 'gpu-1'), [sha256Hex(secret)])
})

test('of two attempts at the same time the later one has the only token that is good', async (t) => {
  const plane = await setUpCli(t)
  const lines = numbered(20).map((id) => ({ id }))
  const call = (attempt: number) =>
    plane.call('operator', 'POST', '/v1/tokens/batch', { batch: '01KTZ4M5N6P7Q8R9S0T1V2W3X4', attempt, lines })
  await call(1)
  const [, { body }] = await Promise.all([call(2), call(3)])
  for (const [at, { id }] of lines.entries()) {
    const join = body.results[at].join as string
    assert.deepEqual(await unusedTokens(plane, id), [sha256Hex(parseJoinString(join)?.secret ?? '')])
  }
})

test('a token of the file that has expired is made anew', async (t) => {
  const plane = await setUpCli(t)
  const file = path.join(plane.folder, 'tokens')
  await enroll(plane, file, ['gpu-1'])
  plane.clock.advance(31 * 60_000)
  const again = await enroll(plane, file, ['gpu-1'])
  assert.match(again.out, /gpu-1 +issued/)
  assert.equal(tokensIn(file).length, 2)
})

test('a life that no token can have, or that is for none, is refused before a line is sent', async (t) => {
  const plane = await setUpCli(t)
  const file = path.join(plane.folder, 'tokens')
  const batch = (...options: string[]) =>
    plane.musterWith({ input: csvOf(['gpu-1']) }, 'node', 'enroll', '--batch', '-', ...options)
  for (const [options, why] of [
    [['--tokens', file, '--expires', '48h'], /48h: a token is good for 24h at most/],
    [['--tokens', file, '--expires', '0s'], /0s: a token is good for/],
    [['--expires', '3h'], /--expires goes with --tokens/],
  ] as const) {
    const said = await batch(...options)
    assert.deepEqual([said.code, why.test(said.err)], [exitCodes.usage, true], said.err)
  }
  assert.equal(fs.existsSync(file), false)
  assert.equal(await plane.store.get('node', 'gpu-1'), null)
})

test('a line that cannot be is reported and the others get their tokens', async (t) => {
  const plane = await setUpCli(t)
  const file = path.join(plane.folder, 'tokens')
  await plane.muster('node', 'enroll', 'gpu-2', '--mac', '02:00:00:00:00:01')
  await plane.muster('profile', 'create', 'gone', '--from', 'gpu-cloud')
  await plane.muster('profile', 'delete', 'gone')
  const input =
    'id,profile,mac\ngpu-1,nope,\ngpu-2,,02:00:00:00:00:02\ngpu-3,,02:00:00:00:00:01\ngpu-4,,\ngpu-5,gone,\nhpc-1,hpc-diskless,02:00:00:00:00:09\nGPU-6,,\ngpu-7,,00:11:22:33:44:55:66:77\n'
  const options = ['--tokens', file, '--expires', '12h']
  const said = await plane.musterWith({ input }, 'node', 'enroll', '--batch', '-', ...options, '-o', 'json')
  assert.equal(said.code, exitCodes.partly)
  assert.match(said.err, /run the same command again: .* --tokens \S+ --expires 12h$/m)
  const { results } = JSON.parse(said.out) as { results: { id: string; result: string; code: string | null }[] }
  assert.deepEqual(
    results.map(({ id, result, code }) => [id, result, code]),
    [
      ['gpu-1', 'failed', 'PROFILE_NOT_FOUND'],
      ['gpu-2', 'failed', 'NODE_ALREADY_ENROLLED'],
      ['gpu-3', 'failed', 'HARDWARE_IDENTITY_CONFLICT'],
      ['gpu-4', 'issued', null],
      ['gpu-5', 'failed', 'PROFILE_NOT_FOUND'],
      ['hpc-1', 'failed', 'JOIN_METHOD_NOT_ALLOWED'],
      ['GPU-6', 'failed', 'REQUEST_INVALID'],
      ['gpu-7', 'failed', 'REQUEST_INVALID'],
    ],
  )
  assert.deepEqual(
    tokensIn(file).map(([id]) => id),
    ['gpu-4'],
  )
  assert.equal(await plane.store.get('node', 'hpc-1'), null)
})

test('nothing is sent where the file is not one of tokens, or not for its owner only', async (t) => {
  const plane = await setUpCli(t)
  const at = (name: string): string => path.join(plane.folder, name)
  fs.writeFileSync(at('notes'), 'a note\n', { mode: 0o600 })
  fs.writeFileSync(at('readable'), '', { mode: 0o644 })
  fs.symlinkSync(at('elsewhere'), at('link'))
  const says = { notes: /Line 1 of .* is not of a file of tokens/, readable: /chmod 600/, link: /is a symbolic link/ }
  for (const [name, shape] of Object.entries(says)) {
    const said = await enroll(plane, at(name), ['gpu-1'])
    assert.equal(said.code, exitCodes.usage)
    assert.match(said.err, shape)
  }
  assert.equal(await plane.store.get('node', 'gpu-1'), null)
  assert.equal(fs.readFileSync(at('notes'), 'utf8'), 'a note\n')
})

/** A plane of 0.4 answers the call so. */
const withoutBatch: Cli['openHttp'] = (target) => {
  const http = openHttpClient(target)
  const body = JSON.stringify({ code: 'NOT_FOUND', message: 'No.', detail: null, next: 'No.', retry_after_ms: null })
  return {
    ...http,
    send: async (request) => {
      const isBatch = request.path === '/v1/tokens/batch'
      return isBatch
        ? { ...(await http.send({ ...request, path: '/v1/nothing' })), status: 404, body }
        : http.send(request)
    },
  }
}

test('with a plane that has no call for a batch, every line is registered and gets its token by calls of its own', async (t) => {
  const plane = await setUpCli(t)
  const file = path.join(plane.folder, 'tokens')
  const said = await enroll(plane, file, ['gpu-1', 'gpu-2'], withoutBatch)
  assert.equal(said.code, exitCodes.ok, said.err)
  assert.deepEqual(
    tokensIn(file)
      .map(([id]) => id)
      .toSorted(),
    ['gpu-1', 'gpu-2'],
  )
  const again = await enroll(plane, file, ['gpu-1', 'gpu-2', 'gpu-3'], withoutBatch)
  assert.match(again.err, /3 lines: 1 token issued, 2 in/)
})

test('a call with a node in two lines is refused whole', async (t) => {
  const plane = await setUpCli(t)
  const body = { batch: '01KTZ4M5N6P7Q8R9S0T1V2W3X4', attempt: 1, lines: [{ id: 'gpu-1' }, { id: 'gpu-1' }] }
  const { status, body: answered } = await plane.call('operator', 'POST', '/v1/tokens/batch', body)
  assert.equal(status, 400)
  assert.equal((answered as { field?: string }).field, 'lines')
})
