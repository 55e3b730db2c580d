// The plane hands the agent out: to whom, what exactly, and how much of it at a time.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { execFile } from 'node:child_process'
import { gunzipSync } from 'node:zlib'
import { agentDownload, downloadLimits } from '#plane/files/downloads.ts'
import { activeNode } from '../process/active-node.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import {
  codeOf,
  fetchAgent,
  holdDownload,
  putAgent,
  putLargeAgent,
  standIn,
  type Asked,
} from '../process/fetch-agent.ts'
import { withPeer } from '../peers/peer.ts'
import { rawNode } from '../process/raw-node.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { sharedPlane } from '../process/shared-plane.ts'

const run = promisify(execFile)
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-agents-'))
after(() => fs.rmSync(folder, { recursive: true, force: true }))
const agent = putAgent(folder, 'muster-linux-x64.gz', standIn('0.5.0'))
const older = putAgent(folder, 'muster-0.4.9-linux-x64.gz', standIn('0.4.9'))
const large = putLargeAgent(folder, 'muster-linux-arm64.gz')
const absent = 'a'.repeat(64)

const onMainThread = ['--tls-threads', '0']
const onAnotherThread = ['--tls-threads', '1']

for (const threads of [onMainThread, onAnotherThread])
  describe(`with ${threads.join(' ')}`, () => {
    const shared = sharedPlane({ args: ['--agents', folder, ...threads], env: { MUSTER_LOG_LEVEL: 'debug' } })
    const fetched = async (digest: string, asked: Asked) => fetchAgent(await shared().target(), digest, asked)
    const secretFor = async (node: string, more: object = {}): Promise<string> => {
      const { status, body } = await shared().api('POST', '/v1/tokens', { node, ...more })
      assert.equal(status, 201, JSON.stringify(body))
      return body.secret
    }
    const ready = async (): Promise<void> => {
      const isRead = async () => (await shared().api('GET', '/v1/agents')).body.reading === false || null
      await eventually('the agents to be read', isRead)
    }

    test('a token or a certificate gets the file whole, which is what operators are shown', async () => {
      await ready()
      const { body } = await shared().api('GET', '/v1/agents')
      assert.deepEqual(
        body.agents.map((one: Record<string, unknown>) => [one['architecture'], one['digest'], one['current']]),
        [
          ['arm64', `sha256:${large.digest}`, true],
          ['x64', `sha256:${agent.digest}`, true],
          ['x64', `sha256:${older.digest}`, false],
        ],
      )
      assert.deepEqual([body.folder, body.faults], [folder, []])
      const secret = await secretFor('dl-1')
      const node = await activeNode(shared(), 'dl-2')
      for (const asked of [{ token: secret }, { identity: node.identity() }])
        for (const { digest, bytes } of [agent, older, large]) {
          const got = await fetched(digest, asked)
          assert.deepEqual([got.status, got.headers['etag']], [200, `"${digest}"`])
          assert.equal(got.headers['content-length'], String(bytes.length))
          assert.ok(got.bytes.equals(bytes))
        }
      assert.match(gunzipSync((await fetched(agent.digest, { token: secret })).bytes).toString(), /echo 0\.5\.0/)
      assert.equal((await rawNode(await shared().target()).enrollByToken(secret)).status, 200, 'it is not used up')
    })

    test('ranges, conditions and HEAD are answered by RFC 9110', async () => {
      const token = await secretFor('dl-3')
      const all = agent.bytes
      const ask = (headers: Record<string, string>, method?: 'HEAD') =>
        fetched(agent.digest, { token, headers, ...(method === undefined ? {} : { method }) })
      const part = await ask({ range: 'bytes=10-19' })
      assert.deepEqual([part.status, part.headers['content-range']], [206, `bytes 10-19/${all.length}`])
      assert.ok(part.bytes.equals(all.subarray(10, 20)))
      const rest = await ask({ range: 'bytes=20-', 'if-range': `"${agent.digest}"` })
      assert.ok(rest.status === 206 && rest.bytes.equals(all.subarray(20)))
      assert.equal((await ask({ range: 'bytes=20-', 'if-range': '"other"' })).status, 200)
      const beyond = await ask({ range: `bytes=${all.length}-` })
      assert.deepEqual([beyond.status, beyond.headers['content-range']], [416, `bytes */${all.length}`])
      const same = await ask({ 'if-none-match': `"${agent.digest}"` })
      assert.deepEqual([same.status, same.bytes.length], [304, 0])
      const head = await ask({}, 'HEAD')
      assert.deepEqual([head.status, head.bytes.length], [200, 0])
      assert.deepEqual([head.headers['content-length'], head.headers['accept-ranges']], [String(all.length), 'bytes'])
      const posted = await fetched(agent.digest, { token, method: 'POST' })
      assert.deepEqual([posted.status, posted.headers['allow']], [405, 'GET, HEAD'])
      assert.equal(codeOf(await fetched(absent, { token })), 'AGENT_NOT_FOUND')
    })

    test('curl goes on where it ended', async (t) => {
      const curl = withPeer(t, 'curl')
      if (curl === null) return
      const target = await shared().target()
      const work = tempFolder(t)
      const [roots, header, file] = ['roots', 'header', 'agent'].map((name) => path.join(work, name)) as [
        string,
        string,
        string,
      ]
      fs.writeFileSync(roots, target.roots.join(''))
      fs.writeFileSync(header, `Authorization: Bearer ${await secretFor('dl-curl')}\n`, { mode: 0o600 })
      fs.writeFileSync(file, large.bytes.subarray(0, large.bytes.length - 1000))
      const args = [
        '-q',
        '-sS',
        '--fail',
        '--cacert',
        roots,
        '--header',
        `@${header}`,
        '--continue-at',
        '-',
        '--output',
        file,
      ]
      const said = ['--write-out', '%{http_code} %{size_download}', `${target.url}/v1/agent/${large.digest}`]
      assert.equal((await run(curl, [...args, ...said])).stdout, '206 1000')
      assert.ok(fs.readFileSync(file).equals(large.bytes))
    })

    test('no machine and one reader fill the plane: beyond a share there is a time to come back, and a place that is left is taken', async (t) => {
      const tokens: string[] = []
      for (let at = 0; at < downloadLimits.atOnce; at++) tokens.push(await secretFor(`dl-h${at}`))
      const target = await shared().target()
      const held: Awaited<ReturnType<typeof holdDownload>>[] = []
      cleanup(t, () => held.forEach((one) => one.hangUp()))
      const hold = async (at: number, from: string) => {
        const one = await holdDownload(target, large.digest, { token: tokens[at] ?? '', from })
        if (one.status === 200) held.push(one)
        return one
      }
      for (let at = 0; at < downloadLimits.atOncePerCaller; at++) assert.equal((await hold(0, '127.0.0.1')).status, 200)
      assert.equal((await hold(0, '127.0.0.1')).status, 503, 'more than one machine needs')
      let at = 1
      while ((await hold(at, '127.0.0.1')).status === 200) at += 1
      assert.equal(held.length, downloadLimits.atOnce / 2, 'one source gets half of the places')
      while ((await hold(at, `127.0.0.${at + 2}`)).status === 200) at += 1
      assert.equal(held.length, downloadLimits.atOnce)
      const waits: number[] = []
      for (let again = 0; again < 3; again++) waits.push((await hold(at, '127.0.0.99')).retryAfterMs ?? 0)
      assert.ok(
        waits[0] !== undefined && waits[0] >= 1000 && waits[2] !== undefined && waits[2] > waits[0],
        waits.join(' '),
      )
      held.pop()?.hangUp()
      await eventually('the place to be free', async () =>
        (await hold(at, '127.0.0.99')).status === 200 ? true : null,
      )
      for (const one of held) one.hangUp()
      await eventually('the other places to be free', async () => {
        const got = await fetched(agent.digest, { token: tokens[19] ?? '' })
        return got.status === 200 || null
      })
    })
    // Who may have it is decided behind TLS.
    if (threads === onMainThread) return

    test('a caller whose token is unknown, malformed, used, revoked, expired or of a revoked node gets one and the same answer', async () => {
      const used = await secretFor('dl-used')
      assert.equal((await rawNode(await shared().target()).enrollByToken(used)).status, 200)
      const revoked = (await shared().api('POST', '/v1/tokens', { node: 'dl-revoked' })).body
      assert.equal((await shared().api('POST', `/v1/tokens/${revoked.token.id}/revoke`, {})).status, 200)
      const ofRevoked = await secretFor('dl-gone')
      assert.equal((await shared().api('POST', '/v1/nodes/dl-gone/revoke', { reason: 'test' })).status, 200)
      const expired = await secretFor('dl-expired', { expires_ms: 1000 })
      await eventually('the token to expire', async () => {
        const { tokens } = (await shared().api('GET', '/v1/tokens?node=dl-expired')).body as {
          tokens: { state: string }[]
        }
        return tokens[0]?.state === 'expired' || null
      })
      const unknown = `enroll_${'x'.repeat(43)}`
      const answers = new Set<string>()
      for (const token of [unknown, used, revoked.secret, ofRevoked, expired, 'enroll_short', shared().adminKey])
        for (const digest of [agent.digest, absent]) {
          const { status, headers, bytes } = await fetched(digest, { token })
          const { date: _date, 'muster-correlation': _correlation, ...rest } = headers
          answers.add(JSON.stringify([status, rest, bytes.toString()]))
        }
      assert.deepEqual([answers.size, [...answers][0]?.includes('TOKEN_INVALID')], [1, true], [...answers].join('\n'))
      const entries = await eventually('the journal to say which tokens they were', async () => {
        const { body } = await shared().api('GET', '/v1/journal?type=refused')
        const tokens = body.entries.map(({ entry }: { entry: { token: string | null } }) => entry.token)
        return tokens.includes(revoked.token.id) ? JSON.stringify(body) : null
      })
      for (const secret of [used, revoked.secret, ofRevoked, expired, unknown])
        for (const place of [entries, shared().stdout(), shared().stderr()]) assert.ok(!place.includes(secret))
    })

    test('a caller without a credential learns nothing, also not whether there is such an agent', async () => {
      for (const digest of [agent.digest, absent]) {
        const got = await fetched(digest, {})
        assert.deepEqual([got.status, codeOf(got)], [401, 'CLIENT_CERT_REQUIRED'])
      }
    })

    test('a caller may fetch it so often with one token, and a look at it is not counted', async () => {
      const token = await secretFor('dl-often')
      for (let at = 0; at < 3; at++) await fetched(agent.digest, { token, method: 'HEAD' })
      for (let at = 0; at < agentDownload.perCaller; at++)
        assert.equal((await fetched(agent.digest, { token, headers: { range: 'bytes=0-0' } })).status, 206)
      const spent = await fetched(agent.digest, { token })
      assert.deepEqual([spent.status, codeOf(spent), spent.headers['retry-after']], [429, 'DOWNLOADS_SPENT', undefined])
      assert.equal((await rawNode(await shared().target()).enrollByToken(token)).status, 200)
    })

    test('a caller that guesses tokens is limited, and one with a good token is not kept out by it', async () => {
      const set = { strangersPerMinutePerSource: 20 }
      assert.equal((await shared().api('PATCH', '/v1/domain', { set })).status, 200)
      const guess = (at: number) => fetched(agent.digest, { token: `enroll_${String(at).padStart(43, '0')}` })
      let code = 'TOKEN_INVALID'
      for (let at = 0; code === 'TOKEN_INVALID' && at <= 40; at++) code = codeOf(await guess(at))
      assert.equal(code, 'RATE_LIMITED')
      assert.equal((await fetched(agent.digest, { token: await secretFor('dl-good') })).status, 200)
    })
  })
