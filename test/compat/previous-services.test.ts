// Services through the helper of a host where plane, agent and helper are of two releases: as before where no statement keys are pinned.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { conditionsOf, nodeOf, succeeded } from '../compliance/ask-plane.ts'
import { startedCommand } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane } from '../process/start-plane.ts'
import { hostFolder, programUser, socketIn, startHelper } from '../process/task-host.ts'
import { commandOf, releaseBefore, type NamedRelease } from './previous-release.ts'

const besideRelease = (release: NamedRelease): void => {
  const commandBefore = commandOf(release)

  const former = ['plane', 'agent', 'helper'] as const
  for (const one of former)
    test(`services run where the ${one} is of that release`, async (t) => {
      const before = await commandBefore(t)
      if (before === null) return
      const commandOfPart = (part: (typeof former)[number]): string => (part === one ? before : startedCommand)
      const plane = await startPlane(t, { command: commandOfPart('plane') })
      const folder = hostFolder(t)
      const node = `[node]\ndomain = "${plane.domain}"\nid = "served"\n`
      const service = `[services.beat]\nexecutable = "/bin/sleep"\nuser = "${programUser}"\narguments = "any"\n`
      fs.writeFileSync(path.join(folder, 'agent.toml'), node + service, { mode: 0o644 })
      await startHelper(t, folder, commandOfPart('helper'))
      const file = path.join(folder, 'vcluster.yaml')
      const services = [{ name: 'beat', command: ['/bin/sleep', '600'], restart: 'on-failure' }]
      fs.writeFileSync(file, JSON.stringify({ name: 'training', services }))
      assert.equal((await plane.muster('vcluster', 'apply', file)).code, 0)
      const join = await plane.token('--node', 'served')
      const command = commandOfPart('agent')
      fs.writeFileSync(path.join(folder, 'none.toml'), '', { mode: 0o600 })
      const args = ['--helper-socket', socketIn(folder), '--config', path.join(folder, 'none.toml')]
      startAgent(t, { command, join, args, state: path.join(folder, 'state') })
      await eventually('the node', async () => (await nodeOf(plane, 'served')).membership === 'active', {
        withinMs: 60_000,
      })
      succeeded(await plane.api('POST', '/v1/nodes/served/assign', { to: 'training' }))
      const runsByHelper = async (): Promise<boolean> => {
        const { overlay, capabilities } = await nodeOf(plane, 'served')
        return capabilities?.services === 'helper' && overlay?.services?.[0]?.state === 'running'
      }
      await eventually('the service to run', runsByHelper, { withinMs: 60_000 })
      assert.deepEqual(await conditionsOf(plane, 'served'), [])
    })
}

const release = releaseBefore()
describe(`this release beside ${release.version}`, { concurrency: 2 }, () => besideRelease(release))
