// What a hostile agent, or a hostile plane behind it, may ask the helper to write: each refused, or contained, and what was in place
// before is in place afterwards.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { HelperCode, RequestOf } from '#agent/helper/verbs.ts'
import { systemClock } from '#platform/clock.ts'
import { done, helpedHost, refusedWith, type HelpedHost } from '../fakes/helped-host.ts'
import { filesIn, thisNode, uriOf } from '../fakes/host-of-programs.ts'
import { certificatePem, programsAuthority } from '../fakes/programs-authority.ts'
import { withPeer } from '../peers/peer.ts'
import { mountTmpfs } from '../process/tmpfs.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** Everything below the folder: names, modes, and where links lead. */
const pictureOf = (folder: string): string[] =>
  fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => {
    const place = path.join(folder, name)
    const stats = fs.lstatSync(place)
    return `${name} ${stats.mode.toString(8)} ${stats.ino} ${stats.isSymbolicLink() ? fs.readlinkSync(place) : ''}`
  })

test('an output that is allowed is written, whole, and replaced by the next', async (t) => {
  const host = helpedHost(t)
  const request = host.request()
  const answer = done(await host.ask('output.write', request)) as { place: string; roots_left_out: number }
  assert.equal(answer.place, path.join(host.tls, 'web'))
  assert.equal(answer.roots_left_out, 0)
  const read = (name: string): string => fs.readFileSync(path.join(answer.place, name), 'utf8')
  assert.equal(read('key.pem'), request.key)
  assert.equal(read('cert.pem'), request.chain)
  assert.equal(read('roots.pem'), request.roots)
  assert.equal(read('crl.pem'), request.lists.join(''))
  assert.equal(read('crl-issuing.pem'), request.lists[0])
  const next = host.request({ lists: host.authority.listPems(8) })
  done(await host.ask('output.write', next))
  assert.equal(read('key.pem'), next.key)
  refusedWith(
    await host.ask('output.remove', { name: 'web', directory: '/etc' }),
    'NOT_ALLOWED',
    /lists no directory \/etc for outputs/,
  )
  done(await host.ask('output.remove', { name: 'web', directory: host.tls }))
  done(await host.ask('output.remove', { name: 'web', directory: host.tls }))
  assert.deepEqual(fs.readdirSync(host.tls), [])
})

test('a leaf below the root of an outside issuer is written where agent.toml names that root, and lists of ours stay with it', async (t) => {
  const host = helpedHost(t)
  const corp = programsAuthority(systemClock.nowMs())
  const { root, issuing } = host.authority
  const request = host.request({
    ...corp.leaf({ uris: [uriOf('web')] }),
    roots: certificatePem(root) + certificatePem(corp.root),
    authorities: certificatePem(issuing) + certificatePem(root),
  })
  refusedWith(await host.ask('output.write', request), 'LEAF_REFUSED', /does not lead to a trusted root/)
  const file = path.join(host.folder, 'outside.pem')
  fs.writeFileSync(file, certificatePem(corp.root), { mode: 0o644 })
  fs.writeFileSync(
    host.agentToml,
    fs.readFileSync(host.agentToml, 'utf8').replace('[[outputs]]', `outside_roots = "${file}"\n[[outputs]]`),
    { mode: 0o644 },
  )
  const { place } = done(await host.ask('output.write', request)) as { place: string }
  const read = (name: string): string => fs.readFileSync(path.join(place, name), 'utf8')
  assert.equal(read('cert.pem'), request.chain)
  assert.equal(read('roots.pem'), request.roots)
  assert.equal(read('crl.pem'), request.lists.join(''))
  // What hangs below the programs root still needs all of its lists.
  const [list] = host.authority.listPems(8)
  const ours = host.request({ lists: [list] })
  refusedWith(await host.ask('output.write', ours), 'LIST_REFUSED', /There is no list of/)
})

type Hostile = {
  readonly what: string
  /** Makes the request, and may change the host before. */
  readonly request: (host: HelpedHost) => Partial<RequestOf<'output.write'>>
  readonly code: HelperCode
  readonly message: RegExp
}

const foreign = programsAuthority(systemClock.nowMs())

const hostile: readonly Hostile[] = [
  ...['..', '.', 'a/..', '../tls', 'sub', ''].map((tail) => ({
    what: `a path that is not the listed one: /${tail}`,
    request: ({ tls }: HelpedHost) => ({ files: filesIn(`${tls}/${tail}`) }),
    code: 'NOT_ALLOWED' as const,
    message: /lists no directory/,
  })),
  {
    what: 'a directory of the system',
    request: () => ({ files: filesIn('/etc/cron.d') }),
    code: 'NOT_ALLOWED',
    message: /lists no directory \/etc\/cron\.d for outputs/,
  },
  {
    what: 'a name that is a path',
    request: () => ({ name: '../web' }),
    code: 'BAD_REQUEST',
    message: /not a request of output\.write/,
  },
  {
    what: 'owner root',
    request: ({ tls }) => ({ files: { ...filesIn(tls), owner: 'root' } }),
    code: 'NOT_ALLOWED',
    message: /does not list owner root/,
  },
  {
    what: 'group root',
    request: ({ tls }) => ({ files: { ...filesIn(tls), group: '0' } }),
    code: 'NOT_ALLOWED',
    message: /does not list group 0/,
  },
  {
    what: 'a key that its whole group may write',
    request: ({ tls }) => ({ files: { ...filesIn(tls), key_mode: 0o660 } }),
    code: 'NOT_ALLOWED',
    message: /allows key_mode 0o640 in .*, not 0o660/,
  },
  {
    what: 'a key that everybody may read',
    request: ({ tls }) => ({ files: { ...filesIn(tls), key_mode: 0o644 } }),
    code: 'NOT_ALLOWED',
    message: /not 0o644/,
  },
  {
    what: 'a leaf of another node',
    request: ({ authority }) => authority.leaf({ uris: [uriOf('web', { ...thisNode, id: 'gpu-002' })] }),
    code: 'LEAF_REFUSED',
    message: /for spiffe:.*gpu-002.*, not for spiffe:.*gpu-001\/program\/web/,
  },
  {
    what: 'a leaf of another domain',
    request: ({ authority }) => authority.leaf({ uris: [uriOf('web', { ...thisNode, domain: 'other.test' })] }),
    code: 'LEAF_REFUSED',
    message: /not for spiffe:\/\/example\.test/,
  },
  {
    what: "another output's leaf",
    request: ({ authority }) => authority.leaf({ uris: [uriOf('db')] }),
    code: 'LEAF_REFUSED',
    message: /program\/db, not for .*program\/web/,
  },
  {
    what: "the node's own leaf",
    request: ({ authority }) => authority.leaf({ uris: ['spiffe://example.test/node/gpu-001'] }),
    code: 'LEAF_REFUSED',
    message: /not for/,
  },
  {
    what: 'a leaf with a second URI',
    request: ({ authority }) => authority.leaf({ uris: [uriOf('web'), 'spiffe://example.test/plane'] }),
    code: 'LEAF_REFUSED',
    message: /not for/,
  },
  {
    what: 'an authority in place of a leaf',
    request: ({ authority }) => authority.leaf({ uris: [uriOf('web')], ca: true }),
    code: 'LEAF_REFUSED',
    message: /authority/,
  },
  {
    what: 'a leaf that has expired',
    request: ({ authority }) => authority.leaf({ uris: [uriOf('web')], lifetimeMs: -1000 }),
    code: 'LEAF_REFUSED',
    message: /expired/,
  },
  {
    what: 'a chain to another root',
    request: () => ({
      ...foreign.leaf({ uris: [uriOf('web')] }),
      lists: foreign.listPems(9),
      roots: certificatePem(foreign.root),
    }),
    code: 'LEAF_REFUSED',
    message: /does not lead to a trusted root/,
  },
  {
    what: 'a key of another leaf',
    request: ({ authority }) => ({ key: authority.leaf({ uris: [uriOf('web')] }).key }),
    code: 'LEAF_REFUSED',
    message: /for another key/,
  },
  {
    what: 'something else in the file of the chain',
    request: ({ request }) => ({ chain: `${request().chain}* * * * * root reboot\n` }),
    code: 'LEAF_REFUSED',
    message: /no certificate chain/,
  },
  {
    what: 'an older list',
    request: ({ authority }) => ({ lists: authority.listPems(6) }),
    code: 'LIST_OLDER',
    message: /List 6 of authority [0-9a-f]+ is older than 7/,
  },
  {
    what: 'a list that another authority signed',
    request: ({ authority }) => ({ lists: [authority.listPems(8)[0], foreign.listPems(8)[1]] }),
    code: 'LIST_REFUSED',
    message: /not signed by an authority/,
  },
  {
    what: 'no list of the root',
    request: ({ authority }) => ({ lists: [authority.listPems(8)[0]] }),
    code: 'LIST_REFUSED',
    message: /no list of .*Muster root/,
  },
  {
    what: 'a list that only adds to another',
    request: ({ authority }) => ({ lists: authority.listPems(8, 7) }),
    code: 'LIST_REFUSED',
    message: /only adds to another/,
  },
  {
    what: 'two lists of one authority',
    request: ({ authority }) => ({ lists: [...authority.listPems(8), authority.listPems(9)[0]] }),
    code: 'LIST_REFUSED',
    message: /Two lists/,
  },
  {
    what: 'a field that nobody knows',
    request: () => ({ also: 'run this' }) as object,
    code: 'BAD_REQUEST',
    message: /not a request/,
  },
]

test('hostile outputs are refused, and leave what is there as it is', async (t) => {
  const host = helpedHost(t)
  done(await host.ask('output.write', host.request()))
  const before = pictureOf(host.folder)
  for (const { what, request, code, message } of hostile) {
    await t.test(what, async () => {
      refusedWith(await host.ask('output.write', host.request(request(host))), code, message)
      assert.deepEqual(pictureOf(host.folder), before)
    })
  }
})

test('an older list is refused also where the output was removed, and after a restart of the helper', async (t) => {
  const host = helpedHost(t)
  done(await host.ask('output.write', host.request()))
  done(await host.ask('output.remove', { name: 'web', directory: host.tls }))
  const older = host.request({ lists: host.authority.listPems(6) })
  refusedWith(await host.ask('output.write', older), 'LIST_OLDER', /older than 7/)
  const again = host.again()
  refusedWith(await again.ask('output.write', older), 'LIST_OLDER', /older than 7/)
  done(await again.ask('output.write', host.request()))

  const record = path.join(host.folder, 'state', 'lists.json')
  fs.writeFileSync(record, '{"version":1,"lists":{')
  refusedWith(await again.ask('output.write', host.request()), 'CONFIG_INVALID', /lists\.json is damaged/)
  fs.rmSync(record)
  fs.symlinkSync('/dev/zero', record)
  refusedWith(await again.ask('output.write', host.request()), 'CONFIG_INVALID', /zero is not a file/)
})

test('a list that was written while the clock was ahead does not keep right ones out', async (t) => {
  const week = 7 * 86_400_000
  let aheadMs = week
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
  const host = helpedHost(t, undefined, clock)
  const ahead = { ...host.authority.leaf({ lifetimeMs: 2 * week }), lists: host.authority.listPems(9, null, week) }
  done(await host.ask('output.write', host.request(ahead)))
  aheadMs = 0
  done(await host.ask('output.write', host.request()))
})

test('a plane that has begun to use a root that is not pinned here gets its output written, without that root', async (t) => {
  const host = helpedHost(t)
  const answer = done(
    await host.ask(
      'output.write',
      host.request({ roots: certificatePem(host.authority.root) + certificatePem(foreign.root) }),
    ),
  )
  assert.equal((answer as { roots_left_out: number }).roots_left_out, 1)
  assert.equal(fs.readFileSync(path.join(host.tls, 'web', 'roots.pem'), 'utf8'), certificatePem(host.authority.root))
})

type Unsafe = { readonly what: string; readonly make: (host: HelpedHost) => void; readonly message: RegExp }

const unsafe: readonly Unsafe[] = [
  {
    what: 'the directory is a link',
    make: ({ tls, folder }) => {
      fs.renameSync(tls, `${folder}/elsewhere`)
      fs.symlinkSync(`${folder}/elsewhere`, tls)
    },
    message: /\/tls is a link/,
  },
  {
    what: 'the directory can be written by its group',
    make: ({ tls }) => fs.chmodSync(tls, 0o775),
    message: /\/tls can be written/,
  },
  { what: 'the directory is for everybody', make: ({ tls }) => fs.chmodSync(tls, 0o1777), message: /mode 1777/ },
  {
    what: 'a folder above can be written by others',
    make: ({ folder }) => fs.chmodSync(folder, 0o777),
    message: /muster-\w+ can be written by other users/,
  },
  {
    what: 'the directory is a file',
    make: ({ tls }) => {
      fs.rmSync(tls, { recursive: true })
      fs.writeFileSync(tls, '')
    },
    message: /\/tls is not a folder/,
  },
  {
    what: 'there is no directory',
    make: ({ tls }) => fs.rmSync(tls, { recursive: true }),
    message: /\/tls does not exist/,
  },
]

test('a directory that others could change is not written in, and the sentence names the component', async (t) => {
  for (const { what, make, message } of unsafe) {
    await t.test(what, async (t) => {
      const host = helpedHost(t)
      make(host)
      const code = what.startsWith('a folder above') ? 'CONFIG_INVALID' : 'PATH_UNSAFE'
      refusedWith(await host.ask('output.write', host.request()), code, message)
    })
  }
})

test('a directory that belongs to another user is not written in', async (t) => {
  if (withPeer(t, 'root') === null) return
  const host = helpedHost(t)
  fs.chownSync(host.tls, 65534, 65534)
  refusedWith(await host.ask('output.write', host.request()), 'PATH_UNSAFE', /\/tls belongs to user 65534, not to root/)
})

test('what is planted in the directory is neither followed nor replaced', async (t) => {
  const host = helpedHost(t)
  const victim = path.join(host.folder, 'victim')
  fs.mkdirSync(victim)
  fs.symlinkSync(victim, path.join(host.tls, 'web'))
  refusedWith(await host.ask('output.write', host.request()), 'PLACE_TAKEN', /web is there already/)
  done(await host.ask('output.remove', { name: 'web', directory: host.tls }))
  assert.equal(fs.readlinkSync(path.join(host.tls, 'web')), victim, 'what is not ours stays')
  fs.rmSync(path.join(host.tls, 'web'))
  fs.writeFileSync(path.join(host.tls, 'web'), 'a file')
  refusedWith(await host.ask('output.write', host.request()), 'PLACE_TAKEN', /web is there already/)
  fs.rmSync(path.join(host.tls, 'web'))
  for (const number of [1, 2, 3]) fs.symlinkSync(victim, path.join(host.tls, `.muster.web.${number}`))
  done(await host.ask('output.write', host.request()))
  assert.deepEqual(fs.readdirSync(victim), [])
})

test('agent.toml that others could write, or that is wrong, allows nothing', async (t) => {
  const host = helpedHost(t)
  fs.chmodSync(host.agentToml, 0o666)
  refusedWith(
    await host.ask('output.write', host.request()),
    'CONFIG_INVALID',
    /agent\.toml can be written by other users/,
  )
  refusedWith(await host.ask('reload', { name: 'web' }), 'CONFIG_INVALID', /agent\.toml can be written/)
  fs.chmodSync(host.agentToml, 0o644)
  host.allow('[reload.nginx]\nunit = "nginx.service"\n')
  refusedWith(await host.ask('reload', { name: 'nginx' }), 'CONFIG_INVALID', /line 8, reload: is unknown here/)
  const hello = done(await host.ask('hello', {})) as { verbs: string[]; fault: string }
  assert.deepEqual(hello.verbs, [])
  assert.match(hello.fault, /line 8, reload/)
  fs.chmodSync(path.join(host.folder, 'roots.pem'), 0o666)
  host.allow('')
  refusedWith(await host.ask('output.write', host.request()), 'CONFIG_INVALID', /roots\.pem can be written/)
})

test('only outputs, owners and groups that are listed; the first of them where none is named', async (t) => {
  if (withPeer(t, 'root') === null) return
  const host = helpedHost(t)
  host.allow('names = ["web"]\nowners = ["nobody", "daemon"]\ngroups = ["nogroup", "daemon"]\nkey_mode = 0o440\n')
  const files = { ...filesIn(host.tls), key_mode: 0o440 }
  refusedWith(
    await host.ask('output.write', host.request({ name: 'db', files })),
    'NOT_ALLOWED',
    /does not list output db/,
  )
  done(await host.ask('output.write', host.request({ files })))
  const first = fs.statSync(path.join(host.tls, 'web', 'key.pem'))
  assert.deepEqual([first.uid, first.gid, first.mode & 0o7777], [65534, 65534, 0o440])
  done(await host.ask('output.write', host.request({ files: { ...files, owner: 'daemon', group: 'daemon' } })))
  const second = fs.statSync(path.join(host.tls, 'web', 'key.pem'))
  assert.deepEqual([second.uid, second.gid], [1, 1])
  const above = fs.statSync(path.join(host.tls, 'web'))
  assert.deepEqual([above.uid, above.mode & 0o7777], [0, 0o755], 'who owns the key cannot replace the files')
  for (const name of ['cert.pem', 'roots.pem', 'crl.pem', 'crl-issuing.pem']) {
    const { uid, gid, mode } = fs.statSync(path.join(host.tls, 'web', name))
    assert.deepEqual([uid, gid, mode & 0o7777], [0, 0, 0o644], `${name}: who owns the key cannot change it`)
  }
})

test('a full disk is said, leaves the generation before in place, and nothing of the new one', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 1 << 20)
  const host = helpedHost(t, disk.folder)
  const request = host.request()
  done(await host.ask('output.write', request))
  const before = pictureOf(host.tls)
  disk.fill(8_192)
  refusedWith(await host.ask('output.write', host.request()), 'DISK_FULL', /disk is full/)
  assert.deepEqual(pictureOf(host.tls), before)
  assert.equal(fs.readFileSync(path.join(host.tls, 'web', 'key.pem'), 'utf8'), request.key)
  disk.free()
  done(await host.ask('output.write', host.request()))
})
