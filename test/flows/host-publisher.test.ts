// Where the outputs of a host go: a real helper, the agent's own directory, and reloads of both.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { startHelper } from '#agent/helper/main.ts'
import { openHostPublisher, type HostPublisher } from '#agent/host-publisher.ts'
import type { Generation } from '#agent/programs/publisher.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { hostOfPrograms, type ProgramHost } from '../fakes/host-of-programs.ts'
import { cleanup } from '../process/cleanup.ts'

const trust = { uid: process.geteuid?.() ?? 0, stickyFolders: true }
const core = { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog }

const publisherOf = async (t: TestContext, host: ProgramHost, keysOnDisk = true): Promise<HostPublisher> => {
  const config = {
    publish: path.join(host.folder, 'own'),
    agentToml: host.agentToml,
    helperSocket: path.join(host.folder, 'run', 'socket'),
  }
  const publisher = openHostPublisher(core, config, { facts: () => {} }, () => keysOnDisk, trust)
  cleanup(t, () => publisher.close())
  await publisher.ready
  return publisher
}

const withHelper = async (t: TestContext, host: ProgramHost): Promise<void> => {
  const socket = { path: path.join(host.folder, 'run', 'socket') }
  const helper = await startHelper({ ...core, trust }, { agentToml: host.agentToml, socket, agentUser: null })
  assert.ok('close' in helper, JSON.stringify(helper))
  cleanup(t, () => helper.close())
}

const generationOf = (host: ProgramHost, directory: string | null): Generation => {
  const { name, files, key, chain, roots, lists, authorities } = host.request()
  const output = { name, files: { ...files, directory }, key_type: 'p256', lifetime_ms: 1, usage: 'both', names: [] }
  return {
    output: output as Generation['output'],
    keyPem: key,
    chainPem: chain,
    rootsPem: roots,
    lists,
    authoritiesPem: authorities,
  }
}

test('without a helper every output is below the directory of the agent, whatever directory it asks for', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const publisher = await publisherOf(t, host)
  const generation = generationOf(host, host.tls)
  const place = path.join(host.folder, 'own', 'web')
  assert.equal(publisher.placeOf(generation.output), place)
  await publisher.publish(generation)
  assert.equal(fs.readFileSync(path.join(place, 'key.pem'), 'utf8'), generation.keyPem)
  await publisher.remove('web')
  assert.deepEqual(fs.readdirSync(path.dirname(place)), [])
})

test('with a helper the outputs that it allows go to the host, and others below the directory of the agent', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  await withHelper(t, host)
  const publisher = await publisherOf(t, host)
  const helped = generationOf(host, host.tls)
  assert.equal(publisher.placeOf(helped.output), path.join(host.tls, 'web'))
  await publisher.publish(helped)
  assert.equal(fs.readFileSync(path.join(host.tls, 'web', 'key.pem'), 'utf8'), helped.keyPem)
  const own = generationOf(host, null)
  assert.equal(publisher.placeOf(own.output), path.join(host.folder, 'own', 'web'))
  await publisher.publish(own)
  assert.equal(fs.readFileSync(path.join(host.folder, 'own', 'web', 'key.pem'), 'utf8'), own.keyPem)
  await publisher.remove('web')
  assert.deepEqual([fs.readdirSync(host.tls), fs.readdirSync(path.join(host.folder, 'own'))], [[], []])
})

test('a reload without a helper is what agent.toml lists under its name, with an end, and says how it failed', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const mark = path.join(host.folder, 'reloaded')
  const listed = (name: string, command: readonly string[]): string =>
    `[reloads.${name}]\ncommand = ${JSON.stringify(command)}\nwithin = "1s"\n`
  host.allow(
    listed('works', ['/usr/bin/touch', mark]) +
      listed('fails', ['/bin/false']) +
      listed('hangs', ['/bin/sleep', '600']),
  )
  const publisher = await publisherOf(t, host)
  await publisher.reload('works')
  assert.ok(fs.existsSync(mark))
  await assert.rejects(publisher.reload('fails'), { message: 'Reload fails failed: exit code 1' })
  await assert.rejects(publisher.reload('hangs'), { message: 'Reload hangs was ended: it took longer than 1 s' })
  await assert.rejects(publisher.reload('other'), { message: `${host.agentToml} lists no reload other` })
  fs.chmodSync(host.agentToml, 0o666)
  await assert.rejects(publisher.reload('works'), /Reload works is not done: /)
})

test('what the agent cannot do is said with the next step', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const publisher = await publisherOf(t, host)
  const generation = generationOf(host, null)
  const owned = (files: Partial<Generation['output']['files']>): Generation => ({
    ...generation,
    output: { ...generation.output, files: { ...generation.output.files, ...files } },
  })
  await assert.rejects(publisher.publish(owned({ owner: 'no-such-user' })), /no user no-such-user on this host/)
  await assert.rejects(publisher.publish(owned({ group: 'no-such-group' })), /no group no-such-group on this host/)
  fs.writeFileSync(path.join(host.folder, 'own', 'web'), 'mine')
  await assert.rejects(publisher.publish(generation), /web is there already and was not written by Muster/)
})
