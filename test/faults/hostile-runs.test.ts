// What a hostile agent may ask the helper to run: only what agent.toml lists, as it is listed there, and with an end.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { stillRuns } from '#platform/process-mark.ts'
import { done, helpedHost, refusedWith } from '../fakes/helped-host.ts'
import type { ProgramHost } from '../fakes/host-of-programs.ts'
import { eventually } from '../process/eventually.ts'

/** A program of the host that others cannot change. */
const script = (host: ProgramHost, name: string, text: string): string => {
  const file = path.join(host.folder, name)
  fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  fs.chmodSync(file, 0o755)
  return file
}

test('a reload that is not listed is not run, and no argument reaches one that is', async (t) => {
  const host = helpedHost(t)
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
  const host = helpedHost(t)
  const program = script(host, 'reload', 'echo "no such site" >&2; exit 3')
  host.allow(`[reloads.web]\ncommand = ["${program}"]\n`)
  refusedWith(await host.ask('reload', { name: 'web' }), 'PROGRAM_FAILED', /exit code 3 \(no such site\)/)
  fs.chmodSync(program, 0o777)
  refusedWith(await host.ask('reload', { name: 'web' }), 'PATH_UNSAFE', /reload can be written by other users/)
})

test('a reload that hangs is ended with all it started, and runs once at a time', async (t) => {
  const host = helpedHost(t)
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
  // A signal that is sent ends a process as soon as the kernel gives it its turn.
  await eventually('all of it to end', () => !started.some((pid) => stillRuns({ pid, birth: null })))
})

test('services and checks run as listed, with the arguments and variables that are listed, and never as root', async (t) => {
  const host = helpedHost(t)
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
