// What a hostile agent, or a hostile plane behind it, may ask of the helper: each refused, or contained, and what was in place
// before is in place afterwards.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openVerbs, type VerbPerformer } from '#agent/helper/perform-verb.ts'
import type { HelperCode, RequestOf, Verb } from '#agent/helper/verbs.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { stillRuns } from '#platform/process-mark.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { filesIn, hostOfPrograms, thisNode, uriOf, type ProgramHost } from '../fakes/host-of-programs.ts'
import { programAuthority } from '../fakes/program-authority.ts'
import { withPeer } from '../peers/peer.ts'
import { cleanup } from '../process/cleanup.ts'
import { mountTmpfs } from '../process/tmpfs.ts'
import { tempFolder } from '../process/temp-folder.ts'

type Said = { readonly answer: unknown } | { readonly code: HelperCode; readonly message: string }

type Helped = ProgramHost & { ask<V extends Verb>(verb: V, body: RequestOf<V>): Promise<Said> }

/** In the process of the test, and trusting who runs it, as a helper trusts that was started by hand. */
const helped = (t: TestContext, inside?: string): Helped => {
  const host = hostOfPrograms(t, systemClock.nowMs(), inside)
  const uid = process.geteuid?.() ?? 0
  const verbs: VerbPerformer = openVerbs(
    {
      clock: systemClock,
      timers: systemTimers,
      random: systemRandom,
      log: silentLog,
      trust: { uid, stickyFolders: true },
    },
    { agentToml: host.agentToml, agentUser: null },
    'child',
  )
  cleanup(t, () => verbs.close())
  return {
    ...host,
    ask: async (verb, body) => {
      const reply = JSON.parse(await verbs.perform(JSON.stringify({ id: 1, verb, body }))) as {
        answer?: unknown
        refused?: { code: HelperCode; message: string }
      }
      return reply.refused ?? { answer: reply.answer }
    },
  }
}

const refusedWith = (said: Said, code: HelperCode, message: RegExp): void => {
  assert.ok('code' in said, `${code} expected, done: ${JSON.stringify(said)}`)
  assert.equal(said.code, code, said.message)
  assert.match(said.message, message)
}

const done = (said: Said): unknown => {
  assert.ok('answer' in said, JSON.stringify(said))
  return said.answer
}

/** Everything below the folder: names, modes, and where links lead. */
const pictureOf = (folder: string): string[] =>
  fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => {
    const place = path.join(folder, name)
    const stats = fs.lstatSync(place)
    return `${name} ${stats.mode.toString(8)} ${stats.ino} ${stats.isSymbolicLink() ? fs.readlinkSync(place) : ''}`
  })

test('an output that is allowed is written, whole, and replaced by the next', async (t) => {
  const host = helped(t)
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
  const next = host.request({ lists: [...host.authority.lists(8)] })
  done(await host.ask('output.write', next))
  assert.equal(read('key.pem'), next.key)
  assert.deepEqual(done(await host.ask('output.remove', { name: 'web' })), { removed: [answer.place] })
  assert.deepEqual(fs.readdirSync(host.tls), [])
})

type Hostile = {
  readonly what: string
  /** Makes the request, and may change the host before. */
  readonly request: (host: Helped) => Partial<RequestOf<'output.write'>>
  readonly code: HelperCode
  readonly message: RegExp
}

const foreign = programAuthority(systemClock.nowMs())

const hostile: readonly Hostile[] = [
  ...['..', '.', 'a/..', '../tls', 'sub', ''].map((tail) => ({
    what: `a path that is not the listed one: /${tail}`,
    request: ({ tls }: Helped) => ({ files: filesIn(`${tls}/${tail}`) }),
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
    request: ({ authority }) => authority.leaf({ uris: [uriOf('web')], notAfterMs: systemClock.nowMs() - 1000 }),
    code: 'LEAF_REFUSED',
    message: /expired/,
  },
  {
    what: 'a chain to another root',
    request: () => ({
      ...foreign.leaf({ uris: [uriOf('web')] }),
      lists: [...foreign.lists(9)],
      roots: foreign.rootPem,
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
    request: ({ authority }) => ({ lists: [...authority.lists(6)] }),
    code: 'LIST_OLDER',
    message: /List 6 of authority [0-9a-f]+ is older than 7/,
  },
  {
    what: 'a list that another authority signed',
    request: ({ authority }) => ({ lists: [authority.lists(8)[0], foreign.lists(8)[1]] }),
    code: 'LIST_REFUSED',
    message: /not signed by an authority/,
  },
  {
    what: 'no list of the root',
    request: ({ authority }) => ({ lists: [authority.lists(8)[0]] }),
    code: 'LIST_REFUSED',
    message: /no list of .*Muster root/,
  },
  {
    what: 'a list that only adds to another',
    request: ({ authority }) => ({ lists: [...authority.lists(8, 7)] }),
    code: 'LIST_REFUSED',
    message: /only adds to another/,
  },
  {
    what: 'two lists of one authority',
    request: ({ authority }) => ({ lists: [...authority.lists(8), authority.lists(9)[0]] }),
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
  const host = helped(t)
  done(await host.ask('output.write', host.request()))
  const before = pictureOf(host.folder)
  for (const { what, request, code, message } of hostile) {
    await t.test(what, async () => {
      refusedWith(await host.ask('output.write', host.request(request(host))), code, message)
      assert.deepEqual(pictureOf(host.folder), before)
    })
  }
})

test('an older list is refused also where the output was removed meanwhile', async (t) => {
  const host = helped(t)
  done(await host.ask('output.write', host.request()))
  done(await host.ask('output.remove', { name: 'web' }))
  const older = host.request({ lists: [...host.authority.lists(6)] })
  refusedWith(await host.ask('output.write', older), 'LIST_OLDER', /older than 7/)
})

test('a plane that has begun to use a root that is not pinned here gets its output written, without that root', async (t) => {
  const host = helped(t)
  const answer = done(await host.ask('output.write', host.request({ roots: host.authority.rootPem + foreign.rootPem })))
  assert.equal((answer as { roots_left_out: number }).roots_left_out, 1)
  assert.equal(fs.readFileSync(path.join(host.tls, 'web', 'roots.pem'), 'utf8'), host.authority.rootPem)
})

type Unsafe = { readonly what: string; readonly make: (host: Helped) => void; readonly message: RegExp }

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
      const host = helped(t)
      make(host)
      const code = what.startsWith('a folder above') ? 'CONFIG_INVALID' : 'PATH_UNSAFE'
      refusedWith(await host.ask('output.write', host.request()), code, message)
    })
  }
})

test('a directory that belongs to another user is not written in', async (t) => {
  if (withPeer(t, 'root') === null) return
  const host = helped(t)
  fs.chownSync(host.tls, 65534, 65534)
  refusedWith(await host.ask('output.write', host.request()), 'PATH_UNSAFE', /\/tls belongs to user 65534, not to root/)
})

test('what is planted in the directory is neither followed nor replaced', async (t) => {
  const host = helped(t)
  const victim = path.join(host.folder, 'victim')
  fs.mkdirSync(victim)
  fs.symlinkSync(victim, path.join(host.tls, 'web'))
  refusedWith(await host.ask('output.write', host.request()), 'PLACE_TAKEN', /web is there already/)
  refusedWith(await host.ask('output.remove', { name: 'web' }), 'PLACE_TAKEN', /web is there already/)
  fs.rmSync(path.join(host.tls, 'web'))
  fs.writeFileSync(path.join(host.tls, 'web'), 'a file')
  refusedWith(await host.ask('output.write', host.request()), 'PLACE_TAKEN', /web is there already/)
  fs.rmSync(path.join(host.tls, 'web'))
  for (const number of [1, 2, 3]) fs.symlinkSync(victim, path.join(host.tls, `.web.${number}`))
  done(await host.ask('output.write', host.request()))
  assert.deepEqual(fs.readdirSync(victim), [])
})

test('agent.toml that others could write, or that is wrong, allows nothing', async (t) => {
  const host = helped(t)
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
  const host = helped(t)
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
  assert.deepEqual([above.uid, above.mode & 0o7777], [0, 0o755], 'who owns the files cannot replace them')
})

test('a full disk is said, leaves the generation before in place, and nothing of the new one', async (t) => {
  if (withPeer(t, 'tmpfs') === null) return
  const disk = mountTmpfs(t, path.join(tempFolder(t), 'disk'), 1 << 20)
  const host = helped(t, disk.folder)
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

/** A program of the host that others cannot change. */
const script = (host: ProgramHost, name: string, text: string): string => {
  const file = path.join(host.folder, name)
  fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  fs.chmodSync(file, 0o755)
  return file
}

test('a reload that is not listed is not run, and no argument reaches one that is', async (t) => {
  const host = helped(t)
  const out = path.join(host.folder, 'out')
  host.allow(`[reloads.web]\ncommand = ["${script(host, 'reload', 'echo "$#" "$@" > "$1"')}", "${out}", "$HOME;id"]\n`)
  refusedWith(await host.ask('reload', { name: 'sshd' }), 'NOT_ALLOWED', /lists no reload sshd/)
  refusedWith(await host.ask('reload', { name: 'web --now' }), 'BAD_REQUEST', /not a request of reload/)
  refusedWith(await host.ask('reload', { name: 'web', arguments: ['x'] } as never), 'BAD_REQUEST', /not a request/)
  done(await host.ask('reload', { name: 'web' }))
  assert.equal(fs.readFileSync(out, 'utf8'), `2 ${out} $HOME;id\n`)
  host.allow(`[reloads.web]\nunit = "web.service"\n`)
  refusedWith(await host.ask('reload', { name: 'web' }), 'PROGRAM_FAILED', /./)
})

test('a reload that fails says why, and one whose program others could change is not run', async (t) => {
  const host = helped(t)
  const program = script(host, 'reload', 'echo "no such site" >&2; exit 3')
  host.allow(`[reloads.web]\ncommand = ["${program}"]\n`)
  refusedWith(await host.ask('reload', { name: 'web' }), 'PROGRAM_FAILED', /exit code 3 \(no such site\)/)
  fs.chmodSync(program, 0o777)
  refusedWith(await host.ask('reload', { name: 'web' }), 'PATH_UNSAFE', /reload can be written by other users/)
})

test('a reload that hangs is ended with all it started, and runs once at a time', async (t) => {
  const host = helped(t)
  const pids = path.join(host.folder, 'pids')
  const program = script(
    host,
    'hang',
    `trap '' TERM; sleep 600 & echo "$$ $!" > ${pids}.new; mv ${pids}.new ${pids}; wait; sleep 600`,
  )
  host.allow(`[reloads.web]\ncommand = ["${program}"]\nwithin = "1s"\n`)
  const first = host.ask('reload', { name: 'web' })
  refusedWith(await host.ask('reload', { name: 'web' }), 'BUSY', /reload web is being run already/)
  refusedWith(await first, 'TIMED_OUT', /longer than 1 s/)
  const started = fs.readFileSync(pids, 'utf8').trim().split(' ').map(Number)
  assert.equal(started.length, 2)
  assert.deepEqual(
    started.filter((pid) => stillRuns({ pid, birth: null })),
    [],
  )
})

test('services and checks run as listed, with the arguments and variables that are listed, and never as root', async (t) => {
  const host = helped(t)
  const me = String(process.geteuid?.() ?? 0)
  const isRoot = me === '0'
  const user = isRoot ? 'nobody' : me
  const program = script(host, 'serve', 'echo "as $(id -u) with $* and $LEVEL"; exec sleep 600')
  const check = script(host, 'check', 'echo "disk 3 is gone"; exit 2')
  host.allow(`
[services.app]
executable = "${program}"
user = "${user}"
arguments = ["--one"]
environment = ["LEVEL"]
[services.root]
executable = "${program}"
user = "root"
[checks.disks]
executable = "${check}"
user = "${user}"
`)
  fs.chmodSync(host.folder, 0o755)
  const start = {
    digest: '0123456789abcdef',
    arguments: [],
    environment: {},
    working_directory: null,
    restart: 'never' as const,
  }
  refusedWith(await host.ask('service.start', { name: 'other', ...start }), 'NOT_ALLOWED', /lists no service other/)
  refusedWith(
    await host.ask('service.start', { name: 'app', ...start, arguments: ['--two'] }),
    'NOT_ALLOWED',
    /other arguments/,
  )
  refusedWith(
    await host.ask('service.start', { name: 'app', ...start, environment: { LD_PRELOAD: '/x.so' } }),
    'NOT_ALLOWED',
    /does not list variable LD_PRELOAD/,
  )
  refusedWith(
    await host.ask('service.start', { name: 'app', ...start, working_directory: '/dev/shm' }),
    'NOT_ALLOWED',
    /does not list \/dev\/shm for service app/,
  )
  refusedWith(
    await host.ask('service.start', { name: 'app', ...start, working_directory: '/\nExecStartPre=+/bin/true' }),
    'BAD_REQUEST',
    /not a request/,
  )
  refusedWith(
    await host.ask('service.start', { name: 'root', ...start }),
    'NOT_ALLOWED',
    isRoot ? /nothing is run as root/ : /is for user root/,
  )
  assert.deepEqual(done(await host.ask('service.start', { name: 'app', ...start, environment: { LEVEL: 'high' } })), {
    outcome: 'started',
  })
  assert.deepEqual(done(await host.ask('service.start', { name: 'app', ...start })), { outcome: 'kept' })
  const expected = `as ${isRoot ? 65534 : me} with --one and high`
  let running: { state: string; pid: number; lines: string[] } | undefined
  while (running?.lines[0] !== expected) {
    const { services } = done(await host.ask('service.status', {})) as { services: (typeof running)[] }
    running = services[0]
    assert.equal(running?.state, 'running')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  done(await host.ask('service.stop', { name: 'app' }))
  assert.equal(stillRuns({ pid: running.pid, birth: null }), false)
  refusedWith(await host.ask('check.run', { name: 'cpu', arguments: [] }), 'NOT_ALLOWED', /lists no check cpu/)
  assert.deepEqual(done(await host.ask('check.run', { name: 'disks', arguments: [] })), {
    exit_code: 2,
    timed_out: false,
    line: 'disk 3 is gone',
    how: 'exit code 2',
  })
})
