import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { sha256Hex } from '#platform/bytes.ts'
import { silentLog } from '#platform/log.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { openTaskFiles } from './task-files.ts'
import type { TaskingAgent } from './task-link.ts'

test('files are fetched one after the other, and one that fails keeps none behind it from coming', async (t) => {
  const agent = { config: { stateFolder: tempFolder(t) }, log: silentLog } as unknown as TaskingAgent
  let [underWay, most] = [0, 0]
  const files = openTaskFiles(
    agent,
    () => ({}) as Identity,
    async (_agent, _identity, { file, params }) => {
      most = Math.max(most, ++underWay)
      await new Promise((resolve) => setImmediate(resolve))
      underWay -= 1
      if (params.digest === '0'.repeat(64)) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      fs.writeFileSync(file, 'some bytes')
      return { kind: 'downloaded' }
    },
  )
  const fetch = (id: string, sha256: string) =>
    files.fetch({
      ...{ domain: 'd', node: 'n', epoch: 1, id, type: 'fetch-file', parameters: { sha256, path: '/srv/x' } },
      ...{ issued_ms: 0, expires_ms: 1, key: 'k', counter: 1 },
    })
  const right = sha256Hex('some bytes')
  const outcomes = await Promise.all([fetch('one', right), fetch('two', '0'.repeat(64)), fetch('three', right)])
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.kind === 'refused' ? outcome.fault : outcome.kind)),
    ['file', 'DISK_FULL', 'file'],
  )
  assert.equal(most, 1)
})
