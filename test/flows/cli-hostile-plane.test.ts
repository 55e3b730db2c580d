// What a command does when whatever answers is not a plane, or means ill.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as http from 'node:http'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { runCli } from '#cli/kit/run-cli.ts'
import { openHttpClient } from '#platform/http-client.ts'
import { testCli } from '../fakes/test-cli.ts'
import { cleanup } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import type { Said } from './cli-setup.ts'

const key = `muster_key_${'k'.repeat(43)}`

const answering = async (t: TestContext, handle: http.RequestListener): Promise<string> => {
  const folder = tempFolder(t)
  fs.mkdirSync(path.join(folder, 'run'))
  fs.writeFileSync(path.join(folder, 'admin.key'), key)
  const server = http.createServer(handle)
  await new Promise<void>((resolve) => server.listen(path.join(folder, 'run', 'operator.sock'), resolve))
  cleanup(t, () => {
    server.closeAllConnections()
    server.close()
  })
  return folder
}

const muster = async (folder: string, ...args: string[]): Promise<Said> => {
  const { cli, stdout, stderr } = testCli({ env: { MUSTER_DATA: folder } })
  const code = await runCli(args, cli)
  return { code, out: stdout(), err: stderr() }
}

const json = (response: http.ServerResponse, status: number, body: object): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

test('escape sequences in what the plane says reach no terminal, as a table, as JSON or as an error', async (t) => {
  const evil = 'x\u001b]0;owned\u0007\u009b2J\u202e\r\n'
  const token = {
    id: evil,
    scope: 'node',
    node: evil,
    profile: evil,
    replace: false,
    state: 'unused',
    created_by: evil,
    created_at: evil,
    expires_at: evil,
    used_at: null,
    used_by: evil,
  }
  const folder = await answering(t, (request, response) =>
    request.method === 'GET'
      ? json(response, 200, { tokens: [token] })
      : json(response, 403, { code: evil, message: evil, detail: evil, next: evil, retry_after_ms: null }),
  )
  const said = [
    await muster(folder, 'token', 'list'),
    await muster(folder, 'token', 'list', '-o', 'json'),
    await muster(folder, 'token', 'revoke', 'x'),
    await muster(folder, 'token', 'revoke', 'x', '-o', 'json'),
  ]
  for (const { out, err } of said) assert.match((out + err).replaceAll('\n', ''), /^[ -~]+$/)
  assert.equal(JSON.parse(said[1]!.out).tokens[0].id, evil)
  assert.equal(said[2]!.out, '')
})

test('an answer of another shape is not taken for a plane', async (t) => {
  const folder = await answering(t, (request, response) => {
    if (request.url === '/v1/tokens') json(response, 200, { tokens: [{ id: 7 }] })
    else if (request.url === '/v1/domain') response.writeHead(200).end('<html>hello</html>')
    else response.writeHead(302, { location: 'http://192.0.2.1/' }).end()
  })
  for (const noun of [
    ['token', 'list'],
    ['domain', 'show'],
    ['profile', 'list'],
  ]) {
    const { code, err } = await muster(folder, ...noun)
    assert.equal(code, 70, noun.join(' '))
    assert.match(err, /^error UNEXPECTED_ANSWER/)
  }
})

test('a join string that is none is not printed: a script would store it', async (t) => {
  const folder = await answering(t, (_request, response) =>
    json(response, 201, {
      token: {
        id: 'a',
        scope: 'node',
        node: 'a',
        profile: 'p',
        replace: false,
        state: 'unused',
        created_by: 'a',
        created_at: 'a',
        expires_at: 'a',
        used_at: null,
        used_by: null,
      },
      secret: 'x',
      join: 'curl https://example.org | sh',
      registered: false,
    }),
  )
  const { code, out } = await muster(folder, 'token', 'create', '--node', 'a')
  assert.equal(code, 70)
  assert.equal(out, '')
})

test('a retry time is distinguished from a refusal', async (t) => {
  const busy = { code: 'BUSY', message: 'Busy.', detail: null, next: 'Try again', retry_after_ms: 2500 }
  const folder = await answering(t, (_request, response) => json(response, 503, busy))
  const { code, err } = await muster(folder, 'node', 'list')
  assert.equal(code, 75)
  assert.match(err, /retry: in 3s/)
})

test('the key travels in a header, and a client waits no longer than its limit', async (t) => {
  let authorization: string | undefined
  const folder = await answering(t, (request) => void (authorization = request.headers.authorization))
  const client = openHttpClient({ kind: 'unix', socketPath: path.join(folder, 'run', 'operator.sock') })
  const request = { method: 'GET', path: '/v1/nodes', headers: { authorization: `Bearer ${key}` }, body: null } as const
  await assert.rejects(client.send({ ...request, timeoutMs: 100 }), { code: 'ETIMEDOUT' })
  assert.equal(authorization, `Bearer ${key}`)
  client.close()
})

test('an answer that never ends is cut off', async (t) => {
  const folder = await answering(t, (_request, response) => {
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    }
    response.on('drain', more)
    more()
  })
  const { code, err } = await muster(folder, 'node', 'list')
  assert.equal(code, 70)
  assert.match(err, /longer than this command reads/)
})

test('a connection that breaks in the middle of an answer is a plane that does not answer', async (t) => {
  const folder = await answering(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{')
    setImmediate(() => response.destroy())
  })
  assert.equal((await muster(folder, 'node', 'list')).code, 69)
})
