// L1, L5, L9: a start on a data folder in which one file is missing, empty, cut short, changed by a bit, older, or of another
// domain. Whatever the plane makes of it, the domain is whole once the original file is back.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import type { Random } from '#platform/random.ts'
import { startPlaneHere, type PlaneHere } from '../process/plane-in-process.ts'
import { rawNode, type RawNode } from '../process/raw-node.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withSeed } from '../process/with-seed.ts'

const isLong = process.env['MUSTER_LONG'] === '1'
const rounds = isLong ? 200 : 20
const damages = ['missing', 'empty', 'truncated', 'bit-flipped', 'older', 'of another domain'] as const

type World = {
  readonly data: string
  readonly whole: string
  readonly older: string
  readonly other: string
  readonly adminKey: string
  readonly root: string
  readonly recoveryRoots: readonly string[]
  /** Enrolled before the CA was rotated, and after. */
  readonly nodes: readonly RawNode[]
}

const copy = (from: string, to: string): void => {
  fs.rmSync(to, { recursive: true, force: true })
  fs.cpSync(from, to, { recursive: true, preserveTimestamps: true })
}

const enrolled = async (plane: PlaneHere, id: string): Promise<RawNode> => {
  const { status, body } = await plane.api('POST', '/v1/tokens', { node: id })
  assert.equal(status, 201, JSON.stringify(body))
  const node = rawNode(await plane.target())
  const reply = await node.enrollByToken(body.secret)
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  return node
}

const recoveryRootsOf = async (plane: PlaneHere): Promise<string[]> => {
  const { body } = await plane.api('GET', '/v1/ca')
  return body.authorities
    .filter(({ role }: { role: string }) => role === 'recovery')
    .map(({ id }: { id: string }) => id)
}

const makeWorld = async (folder: string, options: Readonly<Record<string, unknown>>): Promise<World> => {
  const at = (name: string): string => path.join(folder, name)
  const first = await startPlaneHere(at('d'), options)
  const before = await enrolled(first, 'before')
  await first.stop()
  copy(at('d'), at('older'))
  const again = await startPlaneHere(at('d'))
  if (options['rootOut'] === undefined) assert.equal((await again.api('POST', '/v1/ca/rotate')).status, 200)
  const after = await enrolled(again, 'after')
  const recoveryRoots = await recoveryRootsOf(again)
  await again.stop()
  // Under the same sealing key, so that not even the seals tell the two domains apart.
  fs.mkdirSync(at('other'), { mode: 0o700 })
  fs.copyFileSync(at('d/seal.key'), at('other/seal.key'))
  await (await startPlaneHere(at('other'))).stop()
  copy(at('d'), at('whole'))
  const { rootFingerprint: root } = again.ready
  const adminKey = fs.readFileSync(at('d/admin.key'), 'utf8').trim()
  const world = { whole: at('whole'), older: at('older'), other: at('other'), data: at('d') }
  return { ...world, adminKey, root, recoveryRoots, nodes: [before, after] }
}

let made: Promise<World> | null = null
const kept = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-start-damaged-'))
after(() => fs.rmSync(kept, { recursive: true, force: true }))

/** Made once; every test damages a copy of it. */
const onlineWorld = async (t: TestContext): Promise<World> => ({
  ...(await (made ??= makeWorld(kept, {}))),
  data: path.join(tempFolder(t), 'd'),
})

const filesOf = (folder: string): string[] =>
  (fs.readdirSync(folder, { recursive: true }) as string[])
    .filter((name) => fs.statSync(path.join(folder, name)).isFile())
    .filter((name) => !/^(run|plane\.lock|plane\.pid)/.test(name))
    .sort()

const contentOf = (folder: string): Record<string, string> =>
  Object.fromEntries(filesOf(folder).map((name) => [name, fs.readFileSync(path.join(folder, name), 'base64')]))

/** A file of the same role, whatever its key is called. */
const counterpart = (folder: string, name: string): string | null => {
  const role = path.basename(name).split('.')[0]
  const found = filesOf(folder).find(
    (one) => one === name || (name.startsWith('keys/') && one.startsWith(`keys/${role}.`)),
  )
  return found === undefined ? null : path.join(folder, found)
}

const damage = (world: World, name: string, kind: (typeof damages)[number], random: Random): void => {
  const file = path.join(world.data, name)
  const bytes = fs.readFileSync(file)
  const place = Math.floor(random.unit() * bytes.length)
  switch (kind) {
    case 'missing':
      return fs.rmSync(file)
    case 'empty':
      return fs.truncateSync(file, 0)
    case 'truncated':
      return fs.truncateSync(file, place)
    case 'bit-flipped':
      bytes[place] = (bytes[place] ?? 0) ^ (1 << Math.floor(random.unit() * 8))
      return fs.writeFileSync(file, bytes)
    case 'older':
    case 'of another domain': {
      const from = counterpart(kind === 'older' ? world.older : world.other, name)
      if (from === null) fs.rmSync(file)
      else fs.copyFileSync(from, file)
    }
  }
}

const putBack = (world: World, name: string): void => {
  fs.mkdirSync(path.dirname(path.join(world.data, name)), { recursive: true })
  fs.copyFileSync(path.join(world.whole, name), path.join(world.data, name))
  // Kept as evidence, and warned of until an operator has looked.
  fs.rmSync(`${path.join(world.data, name)}.damaged`, { force: true })
  if (name === 'muster.db')
    for (const end of ['-wal', '-shm']) fs.rmSync(path.join(world.data, name + end), { force: true })
}

let enrollments = 0

const assertWhole = async (world: World): Promise<void> => {
  const plane = await startPlaneHere(world.data, {}, world.adminKey)
  try {
    assert.equal(plane.ready.rootFingerprint, world.root)
    assert.equal(plane.ready.firstRun, false)
    assert.equal(fs.readFileSync(path.join(world.data, 'admin.key'), 'utf8').trim(), world.adminKey)
    assert.deepEqual(await recoveryRootsOf(plane), world.recoveryRoots)
    const target = await plane.target()
    for (const node of world.nodes) {
      const moved = Object.assign(rawNode(target, 'ed25519', null, knownOf(node)))
      assert.equal((await moved.confirm()).status, 200, `${node.id()} is not taken any more`)
    }
    await enrolled(plane, `later-${enrollments++}`)
    const { body } = await plane.api('GET', '/readyz')
    assert.deepEqual(body.warnings ?? [], [])
  } finally {
    await plane.stop()
  }
}

const knownOf = (node: RawNode) => ({
  first: { key: node.key, csr: node.csr },
  known: { id: node.id(), epoch: node.epoch(), identity: node.identity() },
})

/** How the start ended: the code it was refused with, or `started`. A refused one has changed nothing. */
const startOn = async (world: World): Promise<string> => {
  const before = contentOf(world.data)
  try {
    await (await startPlaneHere(world.data, {}, world.adminKey)).stop()
    return 'started'
  } catch (error) {
    assert.ok(error instanceof Error)
    const code = 'code' in error ? String(error.code) : `no code: ${error.message}`
    const after = contentOf(world.data)
    const changed = Object.keys({ ...before, ...after }).filter((name) => before[name] !== after[name])
    assert.deepEqual(changed, [], `a start refused with ${code} has changed these files`)
    return code
  }
}

test(`L1: after ${rounds} starts with one damaged file, the original file gives the domain back whole`, async (t) => {
  const world = await onlineWorld(t)
  await withSeed(async (random) => {
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random.unit() * of.length)] as T
    for (let round = 0; round < rounds; round++) {
      copy(world.whole, world.data)
      const [name, kind] = [pick(filesOf(world.whole)), pick(damages)]
      damage(world, name, kind, random)
      let outcome = 'not started'
      try {
        outcome = await startOn(world)
        putBack(world, name)
        await assertWhole(world)
      } catch (error) {
        throw new Error(`round ${round}: ${name} ${kind}, ${outcome}: ${String(error)}`, { cause: error })
      }
    }
  })
})

test('L8: a damaged journal-heads.json is kept beside the new one, and warned of until it is moved away', async (t) => {
  const world = await onlineWorld(t)
  copy(world.whole, world.data)
  const file = path.join(world.data, 'journal-heads.json')
  const damaged = fs.readFileSync(file, 'utf8').replace('"sequence": ', '"sequence": 1')
  const warnings = async (): Promise<string> => {
    const plane = await startPlaneHere(world.data)
    const { body } = await plane.api('GET', '/readyz')
    await plane.stop()
    return JSON.stringify(body.warnings ?? [])
  }
  for (const name of ['journal-heads.json.damaged', 'journal-heads.json.damaged.2']) {
    fs.writeFileSync(file, damaged)
    assert.match(await warnings(), /journal-heads\.json\.damaged.*muster journal verify/)
    assert.equal(fs.readFileSync(path.join(world.data, name), 'utf8'), damaged)
    assert.notEqual(fs.readFileSync(file, 'utf8'), damaged)
  }
  assert.match(await warnings(), /journal-heads\.json\.damaged/)
  for (const end of ['', '.2']) fs.rmSync(`${file}.damaged${end}`)
  assert.equal(await warnings(), '[]')
})

const smallKinds = { online: ['missing', 'older'], offline: ['empty', 'older'] } as const

for (const root of ['online', 'offline'] as const) {
  test(`L1: neither a start without muster.db nor one with an older muster.db loses a key, root ${root}`, async (t) => {
    const world =
      root === 'online'
        ? await onlineWorld(t)
        : await makeWorld(tempFolder(t), { rootOut: path.join(tempFolder(t), 'usb') })
    const never: Random = { unit: () => 0, bytes: () => Buffer.alloc(0) }
    // What is missing and what is empty is one branch: both in the long run.
    for (const kind of isLong ? (['missing', 'empty', 'older'] as const) : smallKinds[root]) {
      copy(world.whole, world.data)
      damage(world, 'muster.db', kind, never)
      const outcome = await startOn(world)
      if (kind !== 'older') assert.equal(outcome, 'DATA_FOLDER_INCOMPLETE')
      // The issuing key of that time is retired by now.
      else assert.equal(outcome, root === 'online' ? 'KEY_MISSING' : 'started')
      putBack(world, 'muster.db')
      await assertWhole(world)
      const kept = filesOf(world.data).map((name) => path.basename(name))
      for (const name of filesOf(world.whole).filter((one) => /^keys\/(issuing|retired|root|recovery)\./.test(one)))
        assert.ok(kept.includes(path.basename(name)), `${name} is gone`)
    }
  })
}
