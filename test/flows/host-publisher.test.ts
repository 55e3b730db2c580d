// Where the outputs of a host go: a real helper, the agent's own directory, and reloads of both.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { startHelper, type RunningHelper } from '#agent/helper/main.ts'
import { openHostPublisher, type HostPublisher } from '#agent/host-publisher.ts'
import { LeftBehind, type Generation, type Place } from '#agent/programs/publisher.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem } from '#pki/pem.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { mountPointOf } from '#platform/paths.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers, type Timers } from '#platform/timers.ts'
import { testTrust } from '../fakes/helped-host.ts'
import { hostOfPrograms, thisNode, uriOf, type ProgramHost } from '../fakes/host-of-programs.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { manualTimers } from '../fakes/manual-timers.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'

const core = { clock: systemClock, timers: systemTimers, random: systemRandom, log: silentLog }

const publisherOf = async (
  t: TestContext,
  host: ProgramHost,
  keysOnDisk = true,
  timers: Timers = systemTimers,
): Promise<HostPublisher> => {
  const config = {
    publish: path.join(host.folder, 'own'),
    agentToml: host.agentToml,
    helperSocket: path.join(host.folder, 'run', 'socket'),
  }
  const publisher = openHostPublisher({ ...core, timers }, config, { facts: () => {} }, () => keysOnDisk, testTrust)
  cleanup(t, () => publisher.close())
  await publisher.ready
  return publisher
}

const withHelper = async (t: TestContext, host: ProgramHost): Promise<RunningHelper> => {
  const socket = { path: path.join(host.folder, 'run', 'socket') }
  const stateFolder = path.join(host.folder, 'state')
  const options = { agentToml: host.agentToml, socket, agentUser: null, stateFolder }
  const helper = await startHelper({ ...core, trust: testTrust }, options)
  assert.ok('close' in helper, JSON.stringify(helper))
  cleanup(t, () => helper.close())
  return helper
}

const placeOf = (publisher: HostPublisher, { output }: Generation): Place => {
  const place = publisher.placeOf(output)
  assert.ok(place.by !== 'nobody', JSON.stringify(place))
  return place
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
  const directory = path.join(host.folder, 'own')
  const place = placeOf(publisher, generation)
  assert.deepEqual(place, { by: 'agent', directory })
  assert.equal(await publisher.publish(generation, place), 'durable')
  assert.equal(fs.readFileSync(path.join(directory, 'web', 'key.pem'), 'utf8'), generation.keyPem)
  await publisher.remove('web', place)
  assert.deepEqual(fs.readdirSync(directory), [])
})

test('with a helper the outputs that it allows go to the host, and others below the directory of the agent', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  await withHelper(t, host)
  const publisher = await publisherOf(t, host)
  const helped = generationOf(host, host.tls)
  const there = placeOf(publisher, helped)
  assert.deepEqual(there, { by: 'helper', directory: host.tls })
  await publisher.publish(helped, there)
  assert.equal(fs.readFileSync(path.join(host.tls, 'web', 'key.pem'), 'utf8'), helped.keyPem)
  const own = generationOf(host, null)
  const here = placeOf(publisher, own)
  assert.deepEqual(here, { by: 'agent', directory: path.join(host.folder, 'own') })
  await publisher.publish(own, here)
  assert.equal(fs.readFileSync(path.join(host.folder, 'own', 'web', 'key.pem'), 'utf8'), own.keyPem)
  await publisher.remove('web', there)
  assert.deepEqual(fs.readdirSync(host.tls), [])
  assert.ok(fs.existsSync(path.join(host.folder, 'own', 'web')), 'it is removed where it was asked for')
  await publisher.remove('web', here)
  assert.deepEqual(fs.readdirSync(path.join(host.folder, 'own')), [])
})

test('files of a helper that is away are not forgotten, and its outputs do not move to the agent meanwhile', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const helper = await withHelper(t, host)
  const publisher = await publisherOf(t, host)
  const generation = generationOf(host, host.tls)
  const place = placeOf(publisher, generation)
  await publisher.publish(generation, place)
  await helper.close()
  await assert.rejects(publisher.remove('web', place), (error) => {
    assert.ok(error instanceof Error && !(error instanceof LeftBehind))
    assert.match(error.message, /tls\/web is left there: .*(No helper answers at|is gone)/)
    return true
  })
  fs.writeFileSync(path.join(host.folder, 'run', 'socket'), '')
  const next = await publisherOf(t, host)
  assert.equal(next.placeOf(generation.output).by, 'nobody')
  assert.deepEqual(next.placeOf({ ...generation.output, files: { ...generation.output.files, directory: null } }), {
    by: 'agent',
    directory: path.join(host.folder, 'own'),
  })
  fs.rmSync(path.join(host.folder, 'run', 'socket'))
  await withHelper(t, host)
  await publisher.remove('web', place)
  assert.deepEqual(fs.readdirSync(host.tls), [])
})

test('files in a directory that agent.toml no longer lists are left, and it is said where, until they are gone', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  await withHelper(t, host)
  const publisher = await publisherOf(t, host)
  const generation = generationOf(host, host.tls)
  const place = placeOf(publisher, generation)
  await publisher.publish(generation, place)
  const toml = fs.readFileSync(host.agentToml, 'utf8')
  fs.writeFileSync(host.agentToml, toml.replace(host.tls, '/etc/elsewhere'))
  await assert.rejects(publisher.remove('web', place), (error) => {
    assert.ok(error instanceof LeftBehind)
    assert.match(error.message, /tls\/web is left there: agent\.toml lists no directory .*; remove it by hand/)
    return true
  })
  for (const name of fs.readdirSync(host.tls)) fs.rmSync(path.join(host.tls, name), { recursive: true })
  await publisher.remove('web', place)
  fs.rmdirSync(host.tls)
  await publisher.remove('web', place)
})

test('an output moves when agent.toml has listed less in two answers of the helper, not for a file that is being written', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  await withHelper(t, host)
  const timers = manualTimers(manualClock(0))
  let answers = 0
  const counted: Timers = {
    ...timers,
    after: (ms, run) => {
      const cancel = timers.after(ms, run)
      // The client waits so long for an answer, and no longer once it is there.
      const answered = (): void => {
        answers += 1
        cancel()
      }
      return ms > 60_000 ? answered : cancel
    },
  }
  const publisher = await publisherOf(t, host, true, counted)
  const { output } = generationOf(host, host.tls)
  const whole = fs.readFileSync(host.agentToml, 'utf8')
  const placeAfter = async (text: string, ms: number): Promise<string> => {
    fs.writeFileSync(host.agentToml, text)
    const before = answers
    timers.advance(ms)
    await eventually('the answer', () => answers === before + 1)
    return publisher.placeOf(output).by
  }
  assert.equal(await placeAfter('', 30_000), 'helper', 'one answer is none')
  assert.equal(await placeAfter(whole, 5_000), 'helper')
  assert.equal(await placeAfter('', 25_000), 'helper')
  assert.equal(await placeAfter('', 5_000), 'agent')
})

test('files below a mount point that is not mounted now are not taken for removed', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const publisher = await publisherOf(t, host)
  const generation = generationOf(host, null)
  const place = placeOf(publisher, generation)
  const elsewhere = { ...place, mount: '/mnt/no-such-disk' }
  await assert.rejects(publisher.remove('web', elsewhere), (error) => {
    assert.ok(error instanceof LeftBehind)
    assert.match(error.message, /own\/web is left there: \/mnt\/no-such-disk is not mounted/)
    return true
  })
  await publisher.remove('web', { ...place, mount: mountPointOf(place.directory) })
  await publisher.publish(generation, place)
  await publisher.remove('web', elsewhere)
  assert.deepEqual(fs.readdirSync(place.directory), [], 'what is there is removed')
})

test('of two agents that share directories each finds its own outputs only, and says while there may be more', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const publisher = await publisherOf(t, host)
  const web = generationOf(host, null)
  const place = placeOf(publisher, web)
  const other = { domain: thisNode.domain, id: 'gpu-002' }
  const called = (name: string, uri: string): Generation => ({
    ...web,
    output: { ...web.output, name },
    chainPem: host.authority.leaf({ uris: [uri] }).chain,
  })
  const [theirs, both] = [called('api', uriOf('api', other)), called('both', uriOf('both'))]
  for (const each of [web, theirs, both, called('both', uriOf('both', other)), called('moved', uriOf('web'))])
    await publisher.publish(each, place)
  const here = { output: 'web', by: 'agent', directory: place.directory, serial: serialIn(web) }
  const found = (of: HostPublisher, { domain, id } = thisNode) => of.found({ domain, node: id })
  const away = found(publisher)
  assert.deepEqual(away.outputs, [here])
  assert.match(away.more?.message ?? '', /^It is not known where the helper has put outputs: /)
  assert.deepEqual(
    found(publisher, other).outputs.map(({ output }) => output),
    ['api'],
  )

  await withHelper(t, host)
  const helped = await publisherOf(t, host)
  await helped.publish(generationOf(host, host.tls), { by: 'helper', directory: host.tls })
  const { outputs, more } = found(helped)
  assert.deepEqual(
    outputs.map(({ by, output }) => [by, output]),
    [
      ['helper', 'web'],
      ['agent', 'web'],
    ],
  )
  assert.equal(more, null)
  fs.renameSync(place.directory, `${place.directory}.aside`)
  assert.equal(found(helped).more, null, 'what is missing holds nothing')
  fs.writeFileSync(place.directory, 'no directory')
  assert.match(found(helped).more?.message ?? '', /own cannot be searched for outputs of before \(ENOTDIR\)/)
  fs.writeFileSync(host.agentToml, 'this is no toml')
  const broken = found(await publisherOf(t, host))
  assert.deepEqual(broken.outputs, [])
  assert.match(broken.more?.message ?? '', /It is not known where/)
})

const serialIn = ({ chainPem }: Generation): string => {
  const [der] = allFromPem('CERTIFICATE', chainPem) ?? []
  const leaf = parseCertificate(der ?? assert.fail())
  return leaf.kind === 'malformed' ? assert.fail(leaf.why) : leaf.serial
}

test('--publish takes no directory that others could change', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const publisher = await publisherOf(t, host)
  const generation = generationOf(host, null)
  const place = placeOf(publisher, generation)
  const refused = (why: RegExp) => assert.rejects(publisher.publish(generation, place), why)
  await publisher.publish(generation, place)
  fs.chmodSync(place.directory, 0o775)
  await refused(
    /No key is written in .*own: .*own can be written by other users.*; correct that, or use another --publish DIR/,
  )
  fs.chmodSync(place.directory, 0o1777)
  await refused(/mode 1777/)
  await assert.rejects(publisher.remove('web', place), LeftBehind)
  fs.chmodSync(place.directory, 0o755)
  await publisher.remove('web', place)
  fs.mkdirSync(path.join(host.folder, 'open'))
  fs.chmodSync(path.join(host.folder, 'open'), 0o777)
  fs.mkdirSync(path.join(host.folder, 'open', 'real'))
  fs.rmdirSync(place.directory)
  fs.symlinkSync('open/real', place.directory)
  await refused(/open can be written by other users/)
  if (testTrust.uid !== 0) return
  fs.chmodSync(path.join(host.folder, 'open'), 0o755)
  await publisher.publish(generation, place)
  fs.lchownSync(place.directory, 65534, 65534)
  await refused(/own belongs to user 65534, not to root/)
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
  const place = placeOf(publisher, generation)
  const publish = (of: Generation) => publisher.publish(of, place)
  await assert.rejects(publish(owned({ owner: 'no-such-user' })), /no user no-such-user on this host/)
  await assert.rejects(publish(owned({ group: 'no-such-group' })), /no group no-such-group on this host/)
  fs.writeFileSync(path.join(host.folder, 'own', 'web'), 'mine')
  await assert.rejects(publish(generation), /web is there already and was not written by Muster/)
})

test('services wait for a helper whose socket is configured, so that none is started twice when the agent comes first', async (t) => {
  const host = hostOfPrograms(t, systemClock.nowMs())
  const publisher = await publisherOf(t, host)
  const { isKnown, services, checks } = await publisher.runs()
  assert.equal(isKnown, false)
  assert.ok(services !== null && checks !== null)
  await assert.rejects(services.status(), { code: 'NO_HELPER' })
})

test('a helper whose socket is configured is known two seconds after it has come', async (t) => {
  const clock = manualClock(systemClock.nowMs())
  const timers = manualTimers(clock)
  const host = hostOfPrograms(t, systemClock.nowMs())
  const publisher = await publisherOf(t, host, true, timers)
  await withHelper(t, host)
  assert.equal((await publisher.runs()).isKnown, false)
  timers.advance(2_000)
  await eventually('its answer', async () => (await publisher.runs()).isKnown)
})
