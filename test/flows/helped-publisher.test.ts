import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openHelperClient } from '#agent/helper/client.ts'
import { helpedPlace, helpedPublisher, helperFeatures } from '#agent/helper/helped-publisher.ts'
import { startHelper } from '#agent/helper/main.ts'
import type { Generation } from '#agent/programs/publisher.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { faultOfPath } from '#platform/trusted-path.ts'
import { testTrust } from '../fakes/helped-host.ts'
import { hostOfPrograms, type ProgramHost } from '../fakes/host-of-programs.ts'
import { cleanup } from '../process/cleanup.ts'

const faultOf = (socket: string): string | null => faultOfPath(socket, testTrust, { kind: 'socket', links: 'followed' })

const helperOf = async (t: TestContext, host: ProgramHost) => {
  const socket = path.join(host.folder, 'run', 'socket')
  const start = async () => {
    const helper = await startHelper(
      {
        clock: systemClock,
        timers: systemTimers,
        random: systemRandom,
        log: silentLog,
        trust: testTrust,
      },
      {
        agentToml: host.agentToml,
        socket: { path: socket },
        agentUser: null,
        stateFolder: path.join(host.folder, 'state'),
      },
    )
    assert.ok('close' in helper, JSON.stringify(helper))
    cleanup(t, () => helper.close())
    return helper
  }
  const client = openHelperClient(systemTimers, socket, faultOf)
  cleanup(t, () => client.close())
  return { client, socket, start, helper: await start() }
}

const generationOf = (host: ProgramHost): Generation => {
  const { name, files, key, chain, roots, lists, authorities } = host.request()
  return {
    output: { name, files, key_type: 'p256', lifetime_ms: 86_400_000, usage: 'both', names: [] },
    keyPem: key,
    chainPem: chain,
    rootsPem: roots,
    lists,
    authoritiesPem: authorities,
  }
}

test('an agent publishes through its helper, and connects anew to one that was started again', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  host.allow('names = ["web"]\n[reloads.web]\ncommand = ["/bin/true"]\n')
  const { client, start, helper } = await helperOf(t, host)
  const features = await helperFeatures(client)
  assert.ok(features.kind === 'there')
  assert.deepEqual(features.lacks, ['services as users of their own', 'checks as users of their own'])
  const publisher = helpedPublisher(client)

  const generation = generationOf(host)
  const { output } = generation
  const place = helpedPlace(features.allows, output)
  assert.deepEqual(place, { by: 'helper', directory: host.tls })
  assert.equal(helpedPlace(features.allows, { ...output, name: 'db' }), null)
  assert.equal(helpedPlace(features.allows, { ...output, files: { ...output.files, directory: null } }), null)
  assert.equal(await publisher.publish(generation, place), 'durable')
  assert.equal(fs.readFileSync(path.join(host.tls, 'web', 'key.pem'), 'utf8'), generation.keyPem)
  await publisher.reload('web')
  await assert.rejects(publisher.reload('db'), { code: 'NOT_ALLOWED', message: 'agent.toml lists no reload db' })

  await helper.close()
  await assert.rejects(publisher.publish(generation, place), { code: 'NO_HELPER' })
  await start()
  await publisher.publish(generationOf(host), place)
  await publisher.remove('web', place)
  await publisher.remove('web', place)
  assert.deepEqual(fs.readdirSync(host.tls), [])
})

test('a host without a helper says what it lacks', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const client = openHelperClient(systemTimers, path.join(host.folder, 'run', 'socket'), faultOf)
  const features = await helperFeatures(client)
  assert.equal(features.kind, 'none')
  assert.equal(features.lacks.length, 4)
  await assert.rejects(client.ask('reload', { name: 'web' }), /No helper answers at .* start it/)
})

test('what another user may have put in the place of the socket gets nothing', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const { client, socket } = await helperOf(t, host)
  await client.ask('hello', {})
  client.close()
  const run = path.dirname(socket)
  fs.chmodSync(run, 0o777)
  await assert.rejects(client.ask('hello', {}), { code: 'SOCKET_UNSAFE', message: /run can be written by other users/ })
  fs.chmodSync(run, 0o755)
  fs.chmodSync(socket, 0o666)
  await assert.rejects(client.ask('hello', {}), {
    code: 'SOCKET_UNSAFE',
    message: /socket can be written by other users/,
  })
  fs.chmodSync(socket, 0o600)
  if (testTrust.uid === 0) {
    fs.lchownSync(run, 65534, 65534)
    const features = await helperFeatures(client)
    assert.equal(features.kind, 'none')
    assert.match(features.kind === 'none' ? features.why : '', /Nothing is sent to .*: .*run belongs to user 65534/)
    fs.lchownSync(run, 0, 0)
  }
  await client.ask('hello', {})
})
