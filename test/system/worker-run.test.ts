// `muster worker run`: a program beside a certificate that is there when it starts, and that is replaced while it runs.

import assert from 'node:assert/strict'
import { randomUUID, X509Certificate } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { heldIn, obtainCertificate } from '#cli/workers/worker-certificate.ts'
import { generateKey } from '#pki/keys.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { testCli } from '../fakes/test-cli.ts'
import { withPeer } from '../peers/peer.ts'
import { repository, startChild, startedCommand } from '../process/child.ts'
import { eventually, within } from '../process/eventually.ts'
import { openPseudoTerminal } from '../process/pseudo-terminal.ts'
import { runMuster } from '../process/run-muster.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const shared = sharedPlane()

const setUp = async (t: TestContext) => {
  const east = cluster('ES256', `https://${randomUUID()}.example`)
  const { iss, aud, sub } = east
  const keys = { jwks: east.jwks(), types: [], vclusters: [] }
  const added = await shared().api('POST', '/v1/worker-issuers', {
    name: randomUUID().slice(0, 8),
    iss,
    aud,
    sub,
    ...keys,
  })
  assert.equal(added.status, 201, JSON.stringify(added.body))
  const target = await shared().target()
  const home = tempFolder(t)
  const [folder, tokenFile, roots] = ['run', 'token', 'roots.pem'].map((name) => path.join(home, name)) as [
    string,
    string,
    string,
  ]
  const pod = randomUUID()
  const nextToken = (): void => fs.writeFileSync(tokenFile, `${east.token({ pod })}\n`)
  nextToken()
  fs.writeFileSync(roots, target.roots.join('\n'))
  const options = ['--plane', target.url, '--roots', roots, '--token-file', tokenFile, '--folder', folder]
  const place = { url: target.url, ca: target.roots.join('\n'), tokenFile, folder }
  return { folder, options, place, pod, nextToken }
}

test('the program starts with its certificate beside it, and muster ends as the program does', async (t) => {
  const { folder, options, pod } = await setUp(t)
  const script = 'test -s "$MUSTER_WORKER_KEY" && test -s "$MUSTER_WORKER_ROOTS" && echo "$MUSTER_WORKER_ID" && exit 7'
  const ran = await runMuster(['worker', 'run', ...options, '--', 'sh', '-c', script])
  assert.equal(ran.code, 7, ran.stderr)
  assert.match(ran.stdout, new RegExp(`\\.${pod}\\n$`))
  const certificate = new X509Certificate(fs.readFileSync(path.join(folder, 'worker', 'cert.pem')))
  assert.match(certificate.subject, /OU=workers/)
  assert.equal(fs.statSync(path.join(folder, 'worker', 'key.pem')).mode & 0o777, 0o600)
  // A container that is started again takes what is there.
  const again = await runMuster(['worker', 'run', ...options, '--', 'true'])
  assert.equal(again.code, 0, again.stderr)
  assert.equal(heldIn({ folder, url: '', ca: '', tokenFile: '' })?.chain.includes(certificate.toString().trim()), true)
})

test('a program that leaves its directory finds its certificate below a folder that was named from there', async (t) => {
  const { folder, options } = await setUp(t)
  const relative = options.map((word) => (word === folder ? path.basename(folder) : word))
  const script = 'cd / && test -s "$MUSTER_WORKER_KEY" && test -s "$MUSTER_WORKER_CERT" && exit 7'
  const words = ['worker', 'run', ...relative, '--', 'sh', '-c', script]
  const ran = await runMuster(words, { cwd: path.dirname(folder) })
  assert.equal(ran.code, 7, ran.stderr)
})

test('signals reach the program, and a program that is not there is an error of its own', async (t) => {
  const { options } = await setUp(t)
  const script = 'trap "exit 5" TERM; echo ready; while :; do sleep 0.1; done'
  const child = startChild(t, startedCommand, ['worker', 'run', ...options, '--', 'sh', '-c', script], {})
  await eventually('the program runs', () => child.stdout().includes('ready'))
  child.signal('SIGTERM')
  assert.deepEqual(await within('the end of the program', 10_000, child.ended), { code: 5, signal: null })
  const missing = await runMuster(['worker', 'run', ...options, '--', './no-such-program'])
  assert.equal(missing.code, 127)
  assert.match(missing.stderr, /no-such-program/)
})

test('every signal that the page on workers names reaches the program, and SIGUSR1 where it is sent to the program itself', async (t) => {
  const { options } = await setUp(t)
  const page = fs.readFileSync(path.join(repository, 'docs', 'WORKERS.md'), 'utf8')
  const sentence = /(SIG[^.]*) reach the program; (SIGUSR1) does not/.exec(page)
  assert.ok(sentence !== null, 'the page says which signals reach the program')
  const named: readonly string[] = (sentence[1] ?? '').match(/SIG\w+/g) ?? []
  assert.ok(named.includes('SIGTERM') && !named.includes('SIGUSR1'), named.join(' '))
  const traps = [...named, 'SIGUSR1'].map((signal) => `trap "echo got ${signal}" ${signal.slice(3)};`).join(' ')
  const script = `${traps} echo "pid $$"; while :; do sleep 0.1; done`
  const child = startChild(t, startedCommand, ['worker', 'run', ...options, '--', 'sh', '-c', script], {})
  await eventually('the program runs', () => /^pid \d+\n/m.test(child.stdout()))
  for (const signal of named) {
    child.signal(signal as NodeJS.Signals)
    await eventually(`the program has ${signal}`, () => child.stdout().includes(`got ${signal}\n`))
  }
  const program = Number(/^pid (\d+)$/m.exec(child.stdout())?.[1])
  process.kill(program, 'SIGUSR1')
  await eventually('the program has SIGUSR1', () => child.stdout().includes('got SIGUSR1\n'))
  process.kill(program, 'SIGKILL')
  assert.deepEqual(await within('the end of the program', 10_000, child.ended), { code: 137, signal: null })
})

test('a signal that comes as soon as the program runs reaches it as well, and leaves nobody behind', async (t) => {
  const strace = withPeer(t, 'strace')
  if (strace === null) return
  const { options } = await setUp(t)
  // Each change to what signals do takes so long that the program is faster.
  const delay = ['-e', 'trace=rt_sigaction', '-e', 'inject=rt_sigaction:delay_enter=20000']
  const wrapper = [strace, '-D', ...delay, '-o', path.join(tempFolder(t), 'strace')]
  const script = 'trap "exit 5" TERM; kill -TERM $PPID; for n in $(seq 50); do sleep 0.1; done'
  const child = startChild(t, startedCommand, ['worker', 'run', ...options, '--', 'sh', '-c', script], { wrapper })
  assert.deepEqual(await within('the end of the program', 30_000, child.ended), { code: 5, signal: null })
})

test('Ctrl-C on a terminal reaches the program once, as it would without muster', async (t) => {
  if (withPeer(t, 'script') === null) return
  const { options } = await setUp(t)
  const script = "trap 'echo got' INT; echo ready; for n in $(seq 15); do sleep 0.1; done; echo over"
  const words = [startedCommand, 'worker', 'run', ...options, '--', 'sh', '-c', script]
  const terminal = openPseudoTerminal(t, words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' '))
  await terminal.shows(/^ready/m)
  terminal.type('\x03')
  await terminal.shows(/^over/m)
  assert.equal(terminal.output().match(/got/g)?.length, 1, terminal.output())
})

test('a renewal brings another certificate, with another key as soon as there is another token', async (t) => {
  const { place, nextToken } = await setUp(t)
  const { cli } = testCli({ nowMs: Date.now() })
  const first = await obtainCertificate(cli, place)
  const same = await obtainCertificate(cli, place)
  assert.notEqual(same.chain, first.chain)
  assert.equal(same.key, first.key)
  nextToken()
  const next = await obtainCertificate(cli, place)
  assert.notEqual(next.key, first.key)
  assert.equal(heldIn(place)?.chain, next.chain)
})

test('a certificate that the plane takes no longer is replaced by an enrolment, and a revoked worker is told so', async (t) => {
  const { place, nextToken } = await setUp(t)
  const { cli } = testCli({ nowMs: Date.now() })
  const { id } = await obtainCertificate(cli, place)
  const { authorities } = (await shared().api('GET', '/v1/ca')).body
  const { id: issuer } = authorities.find(
    (one: { role: string; signing: boolean }) => one.role === 'workers-issuing' && one.signing,
  )
  assert.equal((await shared().api('POST', '/v1/ca/withdraw', { issuer, reason: 'drill' })).status, 200)
  nextToken()
  assert.equal((await obtainCertificate(cli, place)).id, id)
  assert.equal((await shared().api('POST', `/v1/workers/${id}/revoke`, { reason: 'drill' })).status, 200)
  await assert.rejects(obtainCertificate(cli, place), { code: 'WORKER_REVOKED' })
})

test('a token of no worker issuer is refused with what it says of its issuer, audience and subject', async (t) => {
  const { place, pod } = await setUp(t)
  const other = cluster('ES256', 'https://other.example')
  fs.writeFileSync(place.tokenFile, `${other.token({ pod })}\n`)
  const { cli } = testCli({ nowMs: Date.now() })
  await assert.rejects(obtainCertificate(cli, place), {
    code: 'WORKER_TOKEN_INVALID',
    detail: /the token has iss "https:\/\/other\.example", aud .*, sub "/,
  })
})

test('no program is started for a worker that was revoked, whose certificate is still there; while the plane is away it is', async (t) => {
  const { options, pod } = await setUp(t)
  const script = ['--', 'sh', '-c', 'echo started as $MUSTER_WORKER_ID']
  const first = await runMuster(['worker', 'run', ...options, ...script])
  assert.equal(first.code, 0, first.stderr)
  const id = first.stdout.trim().split(' ').at(-1)
  assert.ok(id?.endsWith(pod), first.stdout)
  const away = options.map((word, at) => (options[at - 1] === '--plane' ? 'https://127.0.0.1:1' : word))
  const alone = await runMuster(['worker', 'run', ...away, ...script])
  assert.deepEqual([alone.code, alone.stdout], [0, first.stdout], alone.stderr)
  assert.match(alone.stderr, /started without asking the plane about its certificate: /)
  assert.equal((await shared().api('POST', `/v1/workers/${id}/revoke`, { reason: 'drill' })).status, 200)
  const ran = await runMuster(['worker', 'run', ...options, ...script])
  assert.deepEqual([ran.code, ran.stdout], [77, ''], ran.stderr)
  assert.match(ran.stderr, /WORKER_REVOKED: .*The program was not started/)
  assert.ok(ran.stderr.includes(`muster worker show ${id}; a new pod is a new worker`), ran.stderr)
})

test('a folder that cannot be made is refused before anything is asked, with the option and the reason', async (t) => {
  const file = path.join(tempFolder(t), 'file')
  fs.writeFileSync(file, '')
  const given = ['--plane', 'https://127.0.0.1:1', '--roots', 'none', '--token-file', 'none']
  const run = (folder: string) => runMuster(['worker', 'run', ...given, '--folder', folder, '--', 'true'])
  const unfit = [
    [file, /a file is in its place or above it/],
    [path.join(file, 'x'), /a file is in its place or above it/],
    ...(process.platform === 'linux' ? [['/proc/foo', /ENOENT/] as const] : []),
  ] as const
  for (const [folder, why] of unfit) {
    const ran = await run(folder)
    assert.equal(ran.code, 2, ran.stderr)
    assert.ok(ran.stderr.includes(`USAGE: --folder ${folder} cannot be made: `), ran.stderr)
    assert.match(ran.stderr, why)
  }
})

test('an empty token file is as one that is missing: there is no token in it', async (t) => {
  const { options, place } = await setUp(t)
  for (const [content, what] of [
    ['', 'empty'],
    [' \n', 'blank'],
    [null, 'missing'],
  ] as const) {
    if (content === null) fs.rmSync(place.tokenFile)
    else fs.writeFileSync(place.tokenFile, content)
    const ran = await runMuster(['worker', 'run', ...options, '--', 'true'])
    assert.equal(ran.code, 2, `${what}: ${ran.stderr}`)
    assert.ok(
      ran.stderr.startsWith(`error USAGE: There is no token in ${place.tokenFile}.\n`),
      `${what}: ${ran.stderr}`,
    )
  }
})

test('a file of roots without a certificate is named, and one with text and a key around the certificate is taken', async (t) => {
  const { options, place } = await setUp(t)
  const file = options[options.indexOf('--roots') + 1] ?? ''
  const key = generateKey('ed25519').pkcs8Pem()
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  for (const content of [key, '', 'roots', broken]) {
    fs.writeFileSync(file, content)
    const ran = await runMuster(['worker', 'run', ...options, '--', 'true'])
    assert.equal(ran.code, 2, ran.stderr)
    assert.ok(ran.stderr.startsWith(`error USAGE: There is no certificate in ${file}.\n`), ran.stderr)
    assert.match(ran.stderr, /--roots .*muster ca bundle/)
  }
  fs.writeFileSync(file, `Root of the domain\n${key}${place.ca}`)
  const ran = await runMuster(['worker', 'run', ...options, '--', 'true'])
  assert.equal(ran.code, 0, ran.stderr)
})
