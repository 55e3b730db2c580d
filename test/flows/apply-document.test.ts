// `muster export` and `muster apply`: a document is shown, then done whole or not at all.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import type { Change } from '#domain/core/change.ts'
import { applyPlan } from '#plane/plans/apply-plan.ts'
import { planDocument, type DocumentAction } from '#plane/plans/declare-document.ts'
import { registerNode } from '#plane/node/operator-node-routes.ts'
import type { NodeQuery } from '#plane/store/contract/store.ts'
import { documentApi, type DocumentBody } from '#wire/plans/document-api.ts'
import { hardwareApi } from '#wire/fleet/hardware-api.ts'
import { vclusterApi } from '#wire/fleet/vcluster-api.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import { operator } from './authority-setup.ts'
import { setUpCli, type CliSetup } from './cli-setup.ts'

const fleet = `apiVersion: muster/v1
domain:
  defaultProfile: edge
  livenessGraceMs: 10m
profiles:
  - name: edge
    description: at the edge
    certificate: {lifetimeMs: 12h, renewFrom: 0.5}
hardwareProfiles:
  - {tag: h100, firmware: slice-vm, slots: 8, sku: h100-slice}
vclusters:
  - name: training
    peering: isolated
    policy: {enforcementMode: enforce}
    files: [{path: etc/app.conf, mode: 0640, content: "a\\n"}]
    services:
      - name: app
        command: [/usr/bin/app]
        limits: {memoryBytes: 2GiB}
        environment: {waitMs: 10s}
`

const setUp = async (t: TestContext) => {
  const plane = await setUpCli(t)
  const run = async (code: number, input: string, ...words: string[]) => {
    const said = await plane.musterWith({ input }, ...words)
    assert.equal(said.code, code, said.err + said.out)
    return said
  }
  const apply = (code: number, input: string, ...words: string[]) => run(code, input, 'apply', '-f', '-', ...words)
  const exported = async () => (await run(exitCodes.ok, '', 'export')).out
  const last = async () => {
    const read = await plane.store.journal.read({ after: null, last: 50, limit: 50, node: null, type: null })
    return read.map(({ entry }) => entry)
  }
  return { ...plane, run, apply, exported, last }
}

test('which tasks may be queued is in the document, of the domain and of each vCluster', async (t) => {
  const { apply, exported, store } = await setUp(t)
  const tasks =
    'domain: {tasks: {run: true, approveRunAbove: 50}}\nvclusters: [{name: lab, tasks: {types: [run, service]}}]'
  await apply(exitCodes.ok, `apiVersion: muster/v1\n${tasks}\n`, '--yes')
  type Policy = { readonly name?: string; readonly tasks: unknown }
  const { domain, vclusters } = parse(await exported()) as { domain: Policy; vclusters: readonly Policy[] }
  assert.deepEqual(domain.tasks, { run: true, reboot: false, approveRunAbove: 50 })
  assert.deepEqual(vclusters.find(({ name }) => name === 'lab')?.tasks, { types: ['run', 'service'] })
  assert.deepEqual((await store.get('vcluster', 'lab'))?.value.tasks, { types: ['run', 'service'] })
})

test('what is exported changes nothing when it is applied, and says so', async (t) => {
  const { apply, exported, last } = await setUp(t)
  const before = await exported()
  assert.match(before, /^apiVersion: muster\/v1\nprofiles:\n {2}- name: gpu-cloud\n/)
  assert.match(before, /tokenTtlMs: 30m/)
  assert.doesNotMatch(before, /muster_key_|deletedAtMs|#/)
  const entries = await last()
  for (const words of [['--plan'], ['--yes'], ['--prune', '--yes'], ['--plan', '--prune', '-o', 'json']]) {
    const { out } = await apply(exitCodes.ok, before, ...words)
    assert.match(out, /nothing to change: 5 things are as standard input says|"plan": null/)
  }
  assert.deepEqual(await last(), entries, 'nothing was written')
  assert.equal(await exported(), before, 'the same text')
})

test('a document is one plan, applied in one commit with an entry for each thing', async (t) => {
  const { apply, exported, run, last, call } = await setUp(t)
  const { out, err } = await apply(exitCodes.onlyPlanned, fleet)
  assert.match(
    out,
    /profile edge +not there, gpu-cloud at version 1 +created as a copy of gpu-cloud, with .*certificate\.lifetimeMs: 24h -> 12h/,
  )
  assert.match(out, /domain +version 1 +defaultProfile: "gpu-cloud" -> "edge"; livenessGraceMs: 5m -> 10m/)
  assert.match(out, /hardware-profile h100 +not there +created: h100-slice/)
  assert.match(out, /vcluster training +not there +created/)
  assert.equal((await call('viewer', 'GET', '/v1/vclusters')).body.vclusters.length, 0, 'only shown')
  const [, id = ''] = /plan apply (\w+)/.exec(err) ?? []
  const applied = await run(exitCodes.ok, '', 'plan', 'apply', id)
  assert.match(applied.out, /vcluster training +done/)

  const entries = (await last()).slice(-5)
  assert.deepEqual(
    entries.map(({ type }) => type),
    ['plan.applied', 'profile.created', 'domain.changed', 'hardware_profile.created', 'vcluster.created'],
  )
  const commits = new Set(entries.map(({ operation }) => operation.slice(0, -2)))
  assert.equal(commits.size, 1, [...commits].join())
  const { body } = await call('viewer', 'GET', '/v1/vclusters/training')
  assert.deepEqual([body.peering, body.overlay.files[0].mode], ['isolated', 0o640])
  assert.deepEqual(body.overlay.services[0].environment, { waitMs: '10s' }, 'a variable is text')
  await apply(exitCodes.ok, fleet, '--plan')
  assert.match(await exported(), /memoryBytes: 2GiB/)
})

test('a plan is refused if anything that it names has changed, and then nothing of it is done', async (t) => {
  const { apply, run, exported } = await setUp(t)
  const { err } = await apply(exitCodes.onlyPlanned, fleet)
  const [, id = ''] = /plan apply (\w+)/.exec(err) ?? []
  await run(exitCodes.ok, '', 'domain', 'set', 'drainMs=2m')
  const before = await exported()
  const refused = await run(exitCodes.refused, '', 'plan', 'apply', id)
  assert.match(refused.err, /PLAN_STALE[\s\S]*domain was version 1, and is version 2/)
  assert.equal(await exported(), before)
})

test('a plan with a new profile is refused if the one that it copies has changed since', async (t) => {
  const { apply, run } = await setUp(t)
  const { err } = await apply(exitCodes.onlyPlanned, 'apiVersion: muster/v1\nprofiles: [{name: edge}]\n')
  const [, id = ''] = /plan apply (\w+)/.exec(err) ?? []
  await run(exitCodes.ok, '', 'profile', 'set', 'gpu-cloud', 'join.tokenTtlMs=5m')
  const refused = await run(exitCodes.refused, '', 'plan', 'apply', id)
  assert.match(refused.err, /PLAN_STALE[\s\S]*edge was gpu-cloud at version 1, and is gpu-cloud at version 2/)
})

test('one wrong part refuses all of it, by the rule of its own route, with file, line and key', async (t) => {
  const { apply, exported } = await setUp(t)
  const before = await exported()
  const wrong = (from: string, to: string) => fleet.replace(from, to)
  const cases: readonly (readonly [string, RegExp, number?])[] = [
    [
      wrong('lifetimeMs: 12h', 'lifetimeMs: 1ms'),
      /PROFILE_INVALID[\s\S]*-:8: profiles\[0\]\.certificate\.lifetimeMs: .* takes 1s to/,
    ],
    [
      wrong('renewFrom: 0.5', 'renewForm: 0.5'),
      /PROFILE_INVALID[\s\S]*-:8: .*there is no setting certificate\.renewForm;.*; did you mean renewFrom\?/,
    ],
    [
      wrong('peering: isolated', 'peering: star'),
      /VCLUSTER_INVALID[\s\S]*-:13: vclusters\[0\]\.peering: .*mesh, isolated/,
    ],
    [
      wrong('defaultProfile: edge', 'defaultProfile: egde'),
      /SETTING_INVALID[\s\S]*-:3: domain\.defaultProfile: .*one of .*edge/,
    ],
    [wrong('slots: 8', 'slots: 800'), /REQUEST_INVALID[\s\S]*-:10: hardwareProfiles\[0\]\.slots/],
    [wrong('vclusters:', 'clusters:'), /REQUEST_INVALID[\s\S]*-:\d+: clusters: .*; did you mean vclusters\?/],
    [`${fleet}  - name: training\n`, /REQUEST_INVALID[\s\S]*-:21: vclusters\[1\]: training is there twice/],
    [wrong('path: etc/app.conf', 'path: ../app.conf'), /-:15: vclusters\[0\]\.files\[0\]\.path/],
    [wrong('mode: 0640', 'mode: 640'), /-:15: vclusters\[0\]\.files\[0\]\.mode takes octal/, exitCodes.usage],
    [
      wrong('livenessGraceMs: 10m', 'livenessGraceMs: soon'),
      /-:4: domain\.livenessGraceMs takes a duration/,
      exitCodes.usage,
    ],
    [wrong('muster/v1', 'muster/v2'), /-:1: apiVersion takes muster\/v1/, exitCodes.usage],
    [wrong('domain:', 'domain: ['), /-:\d+: /, exitCodes.usage],
  ]
  for (const [text, says, code = exitCodes.refused] of cases) {
    const { err } = await apply(code, text)
    assert.match(err, says)
  }
  assert.equal(await exported(), before)
})

test('what a document leaves out stays, and is deleted only with --prune and while nothing uses it', async (t) => {
  const { apply, run, exported } = await setUp(t)
  await apply(exitCodes.ok, fleet, '--yes')
  const text = await exported()
  const smaller = stringify({
    ...parse(text),
    profiles: parse(text).profiles.filter(({ name }: { name: string }) => name === 'edge'),
    vclusters: [],
    hardwareProfiles: [{ tag: 'h100', firmware: 'slice-vm', slots: 4, sku: 'h100-slice' }],
  })
  const kept = await apply(exitCodes.onlyPlanned, smaller)
  assert.match(kept.out, /hardware-profile h100 +version 1 +replaced: slots: 8 -> 4/)
  assert.doesNotMatch(kept.out, /deleted/)

  await run(exitCodes.ok, '', 'node', 'enroll', 'gpu-001', '--profile', 'mesh-paas')
  await run(exitCodes.ok, '', 'node', 'assign', 'gpu-001', '--to', 'training')
  const inUse = await apply(exitCodes.refused, smaller, '--prune')
  assert.match(inUse.err, /VCLUSTER_IN_USE/)
  await run(exitCodes.ok, '', 'node', 'unassign', 'gpu-001')
  assert.match(
    (await apply(exitCodes.refused, smaller, '--prune')).err,
    /PROFILE_IN_USE[\s\S]*mesh-paas is not in the document, and cannot be deleted: 1 node under it/,
  )
  await run(exitCodes.ok, '', 'node', 'revoke', 'gpu-001', '--reason', 'gone')
  const pruned = await apply(exitCodes.ok, smaller, '--prune', '--yes')
  assert.match(pruned.out, /vcluster training +done[\s\S]*profile gpu-cloud +done/)
  const now = parse(await exported())
  assert.deepEqual([now.vclusters, now.profiles.length, now.hardwareProfiles[0].slots], [[], 1, 4])
  const onlyDomain = 'apiVersion: muster/v1\ndomain: {drainMs: 2m}\n'
  await apply(exitCodes.ok, onlyDomain, '--prune', '--yes')
  assert.equal(parse(await exported()).profiles.length, 1, 'a section that is not there is not looked at')
})

test('a node that comes under a profile meanwhile keeps it, and the rest of the document is not applied either', async (t) => {
  const plane = await setUp(t)
  const document = parse(await plane.exported(), { customTags: [] }) as DocumentBody
  const { body } = await plane.call('viewer', 'GET', '/v1/document')
  const smaller = { ...(body as DocumentBody), profiles: body.profiles.slice(0, 1), domain: { drainMs: 120_000 } }
  assert.equal(document.profiles?.length, 4)
  const done = await applyRacing(plane, { document: smaller, prune: true }, async () => {
    const asked = { id: 'gpu-001', profile: 'mesh-paas', macs: [], bmcSerial: null }
    assert.equal((await registerNode(plane, asked, operator)).kind, 'committed')
  })
  assert.equal(done.kind === 'refused' && done.code, 'PROFILE_IN_USE')
  assert.equal((await plane.store.get('domain', 'domain'))?.value.drainMs, 60_000)
})

/** `race`: between the decision and the commit. */
const applyRacing = async (plane: CliSetup, action: DocumentAction, race: () => Promise<void>) => {
  const planned = await planDocument(plane, plane.authority, action, operator)
  assert.ok(planned.kind === 'planned' && planned.plan !== null)
  let first = true
  const commit = async (change: Change) => {
    if (first) {
      first = false
      await race()
    }
    return plane.store.commit(change)
  }
  const store = new Proxy(plane.store, {
    get: (target, name) => (name === 'commit' ? commit : Reflect.get(target, name)),
  })
  const channels = { openSessions: () => [] } as never
  const parts = {
    authority: plane.authority,
    channels,
    peers: plane.peers,
    receipts: plane.receipts,
    planeNames: plane.planeNames,
    taskSigners: plane.taskSigners,
  }
  return applyPlan({ ...plane, store }, parts, planned.plan.id, { by: operator, key: 'a-key' })
}

const hardwareProfile = (tag: string) => ({ tag, firmware: 'x', slots: 0, sku: `${tag}-sku` })

test('a machine that gets the tag of a hardware profile meanwhile keeps it, and nothing of the document is applied', async (t) => {
  const plane = await setUp(t)
  await plane.apply(
    exitCodes.ok,
    stringify({ apiVersion: 'muster/v1', hardwareProfiles: [hardwareProfile('h100')] }),
    '--yes',
  )
  await plane.run(exitCodes.ok, '', 'node', 'enroll', 'gpu-001')
  await plane.run(exitCodes.ok, '', 'node', 'tag', 'gpu-001', '--add', 'h100')
  const document: DocumentBody = {
    apiVersion: 'muster/v1',
    domain: { drainMs: 120_000 },
    hardwareProfiles: [hardwareProfile('a100')],
  }
  const done = await applyRacing(plane, { document, prune: false }, async () => {
    await plane.run(exitCodes.ok, '', 'node', 'tag', 'gpu-001', '--add', 'a100')
  })
  assert.equal(done.kind === 'refused' && done.code, 'PROFILE_TAG_CONFLICT')
  assert.equal(await plane.store.get('hardware-profile', 'a100'), null)
  assert.equal((await plane.store.get('domain', 'domain'))?.value.drainMs, 60_000)
})

test('tokens and nodes are read once for a plan, however many things of it ask for them', async (t) => {
  const plane = await setUp(t)
  const asked: string[] = []
  const store = new Proxy(plane.store, {
    get(target, name) {
      const found: unknown = Reflect.get(target, name)
      if (typeof found !== 'function' || (name !== 'list' && name !== 'nodes')) return found
      return (...args: readonly unknown[]): unknown => {
        const [query] = args
        asked.push(typeof query === 'string' ? query : `nodes of ${(query as NodeQuery).profile ?? 'any profile'}`)
        return found(...args)
      }
    },
  })
  const { body } = await plane.call('viewer', 'GET', '/v1/document')
  const hardwareProfiles = ['h100', 'a100', 'b200'].map(hardwareProfile)
  const document = { ...(body as DocumentBody), profiles: body.profiles.slice(0, 1), hardwareProfiles }
  const planned = await planDocument({ ...plane, store }, plane.authority, { document, prune: true }, operator)
  assert.equal(planned.kind === 'planned' && planned.plan?.effects.length, 6)
  assert.equal(asked.filter((one) => one === 'token').length, 1)
  assert.equal(asked.filter((one) => one === 'nodes of any profile').length, 1)
})

test('a document asks for the role that each of its parts asks for', async (t) => {
  const { musterWith, keyFile } = await setUp(t)
  for (const { access } of [
    ...[settingsApi.createProfile, settingsApi.changeProfile, settingsApi.deleteProfile, settingsApi.changeDomain],
    ...[
      vclusterApi.create,
      vclusterApi.change,
      vclusterApi.delete,
      hardwareApi.createProfile,
      hardwareApi.removeProfile,
    ],
  ])
    assert.equal(access, documentApi.plan.access)
  const as = (role: 'viewer' | 'operator') => ({ env: { MUSTER_KEY_FILE: keyFile(role) }, input: fleet })
  assert.equal((await musterWith(as('viewer'), 'export')).code, exitCodes.ok)
  assert.equal((await musterWith(as('operator'), 'apply', '-f', '-')).code, exitCodes.notAllowed)
})

const text = fc.string({ unit: 'binary', maxLength: 40 }).filter((one) => one.isWellFormed() && !one.includes('\0'))
const name = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/).filter((one) => one !== 'none')
const named = <T extends { name: string }>(item: fc.Arbitrary<T>) =>
  fc.uniqueArray(item, { selector: (one) => one.name, maxLength: 3 })
const vcluster = fc.record({
  name,
  description: fc.string({ maxLength: 20 }),
  peering: fc.constantFrom('mesh', 'isolated'),
  closed: fc.boolean(),
  files: fc.uniqueArray(
    fc.record({ path: name, mode: fc.constantFrom(0o644, 0o700), content: text, template: fc.constant(true) }),
    { selector: ({ path }) => path, maxLength: 2 },
  ),
  services: named(
    fc.record({
      name,
      command: fc.array(
        fc.stringMatching(/^[\x21-\x7e]{1,12}$/).filter((one) => !one.includes('{')),
        { minLength: 1, maxLength: 3 },
      ),
      environment: fc.dictionary(fc.stringMatching(/^[A-Z]{1,5}$/), fc.stringMatching(/^[\x20-\x7e]{0,12}$/), {
        minKeys: 1,
        maxKeys: 2,
      }),
    }),
  ),
})
const profile = fc.record({
  name,
  description: fc.string({ maxLength: 20 }),
  certificate: fc.record({ lifetimeMs: fc.integer({ min: 60_000, max: 86_400_000 }), uriSan: fc.boolean() }),
  recovery: fc.record({ limit: fc.integer({ min: 1, max: 9 }) }),
})

test('what is exported is what was applied', async (t) => {
  const { apply, exported, run } = await setUp(t)
  await fc.assert(
    fc.asyncProperty(named(profile), named(vcluster), async (profiles, vclusters) => {
      const { profiles: shipped } = parse(await exported())
      const kept = shipped.filter((one: { name: string }) => one.name === 'gpu-cloud')
      const document = { apiVersion: 'muster/v1', profiles: [...kept, ...profiles], vclusters }
      const { code, out } = await applied(apply, JSON.stringify(document))
      assert.equal(code, exitCodes.ok, out)
      const now = parse(await exported())
      const again = await apply(exitCodes.ok, stringify(now), '--plan', '--prune')
      assert.match(again.out, /nothing to change/)
      const json = JSON.parse((await run(exitCodes.ok, '', 'export', '-o', 'json')).out)
      assert.equal(json.profiles.length + json.vclusters.length, 1 + profiles.length + vclusters.length)
      assert.partialDeepStrictEqual(json.vclusters, byName(vclusters))
      assert.partialDeepStrictEqual(json.profiles, byName([...profiles, { name: 'gpu-cloud' }]))
      assert.equal((await apply(exitCodes.ok, JSON.stringify(document), '--plan', '--prune')).code, exitCodes.ok)
    }),
    { numRuns: process.env['MUSTER_LONG'] === undefined ? 6 : 100 },
  )
})

const byName = <T extends { readonly name: string }>(all: readonly T[]): readonly T[] =>
  all.toSorted((one, other) => (one.name < other.name ? -1 : 1))

const applied = (apply: Awaited<ReturnType<typeof setUp>>['apply'], document: string) =>
  apply(exitCodes.ok, document, '--prune', '--yes')
