import assert from 'node:assert/strict'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { isRefusal } from '#domain/core/refusal.ts'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { manualTimers } from '../../../test/fakes/manual-timers.ts'
import { silentLog } from '#platform/log.ts'
import { putAgent } from '../../../test/process/fetch-agent.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { openAgentFiles, type AgentFile } from '#plane/enrollment/agent-files.ts'
import { agentDownload, downloadLimits, openDownloads, type DownloadCaller } from './downloads.ts'

const hourMs = 3_600_000

const setUp = async (t: TestContext, replicas: number) => {
  const clock = manualClock(1_000_000)
  const core = { clock, timers: manualTimers(clock), log: silentLog }
  const folder = path.join(tempFolder(t), 'agents')
  const { digest } = putAgent(folder, 'muster-linux-x64.gz', Buffer.from('agent'))
  const files = openAgentFiles([folder], silentLog)
  await files.look()
  const file = files.byDigest(digest)
  assert.ok(file !== null)
  const downloads = openDownloads(core, { replicas: () => replicas, bytesPerSecond: 1e6, onEnd: () => {} })
  /** Begins and ends one; what it was refused with. */
  const fetched = async (caller: DownloadCaller): Promise<string> => {
    const begun = await downloads.begin(file, caller, agentDownload)
    if (isRefusal(begun)) return begun.code
    const gone = { destroyed: true, socket: null }
    return begun.send(gone as unknown as Parameters<typeof begun.send>[0], 0, 1)
  }
  return { clock, fetched, file, downloads }
}

const token = (id: string): DownloadCaller => ({
  kind: 'token',
  id,
  node: null,
  expiresAtMs: 1_000_000 + hourMs,
  source: '192.0.2.1',
})

const node = (id: string): DownloadCaller => ({
  kind: 'node',
  id,
  epoch: 1,
  credential: { by: 'certificate', issuer: 'i', serial: '1', spki: 's' },
  notAfterMs: Infinity,
  evidenceOnly: false,
  source: '192.0.2.1',
})

const timesUntilSpent = async (fetched: (caller: DownloadCaller) => Promise<string>, caller: DownloadCaller) => {
  for (let times = 0; times < 100; times++) if ((await fetched(caller)) === 'DOWNLOADS_SPENT') return times
  return Infinity
}

test('several planes together allow a caller about what one does, and each some', async (t) => {
  for (const [replicas, each] of [
    [1, agentDownload.perCaller],
    [2, 5],
    [64, agentDownload.perCallerAtLeast],
  ] as const)
    assert.equal(await timesUntilSpent((await setUp(t, replicas)).fetched, token('a')), each)
})

test('a token is counted as long as it lives, and a certificate by the hour', async (t) => {
  const { clock, fetched } = await setUp(t, 1)
  for (const caller of [token('a'), token('b'), node('n')])
    assert.equal(await timesUntilSpent(fetched, caller), agentDownload.perCaller)
  clock.advance(hourMs - 1)
  assert.equal(await fetched(token('a')), 'DOWNLOADS_SPENT')
  clock.advance(1)
  assert.equal(await fetched(node('n')), 'gone')
})

test('an agent that cannot be looked at is refused, and its place and its file are given back', async (t) => {
  const { fetched, file, downloads } = await setUp(t, 1)
  let held = 0
  const hold = () => {
    held += 1
    return () => void (held -= 1)
  }
  const isUnchanged = async () => Promise.reject(new Error('EIO'))
  const broken: AgentFile = { ...file, content: { ...file.content, hold, isUnchanged } }
  for (let at = 0; at <= downloadLimits.atOnce; at++) {
    const begun = await downloads.begin(broken, token('a'), agentDownload)
    assert.equal(isRefusal(begun) && begun.code, 'UNAVAILABLE')
  }
  assert.equal(held, 0)
  assert.equal(await fetched(token('a')), 'gone')
})

test('nodes hold at most half of the places, so that a machine with a token finds one', async (t) => {
  const { file, downloads } = await setUp(t, 1)
  const begin = async (caller: DownloadCaller): Promise<string> => {
    const begun = await downloads.begin(file, caller, agentDownload)
    return isRefusal(begun) ? begun.code : begun.kind
  }
  for (let at = 0; at < downloadLimits.atOnce; at++)
    assert.equal(await begin(node(`n${at}`)), at < downloadLimits.atOnce / 2 ? 'sending' : 'BUSY')
  assert.equal(await begin(token('a')), 'sending')
})
