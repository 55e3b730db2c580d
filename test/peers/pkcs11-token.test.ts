// The thread of a PKCS#11 module against SoftHSM: what it makes, what it signs, and what happens when the token does not play along.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createPublicKey, verify } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { systemClock } from '#platform/clock.ts'
import { openPkcs11, Pkcs11Unavailable, type Pkcs11Parts } from '#platform/pkcs11.ts'
import { systemTimers } from '#platform/timers.ts'
import { derSignature } from '#pki/ecdsa-signature.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { cleanup } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'
import { pin as pinOfTest, softTokens } from './soft-token.ts'

const place = (label: string, token = 'vault') => ({ token, serial: null, label, id: null })

const opened = (t: TestContext, library: string, more: Partial<Pkcs11Parts>) => {
  const pkcs11 = openPkcs11({ library, pinOf: () => pinOfTest, clock: systemClock, timers: systemTimers, ...more })
  cleanup(t, () => pkcs11.close())
  return pkcs11
}

const textOf = (pkcs11: ReturnType<typeof openPkcs11>): string =>
  pkcs11
    .troubles()
    .map(({ error }) => error.message)
    .join()

const data = Buffer.from('what is signed')

const isSigned = (spki: Uint8Array, signature: Uint8Array): boolean => {
  const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
  const digest = key.asymmetricKeyDetails?.namedCurve === 'secp384r1' ? 'sha384' : 'sha256'
  return verify(digest, data, { key, dsaEncoding: 'ieee-p1363' }, signature)
}

const unavailable = (shape: RegExp) => (error: unknown) =>
  error instanceof Pkcs11Unavailable &&
  error.code === 'PKCS11_UNAVAILABLE' &&
  error.next !== '' &&
  shape.test(error.message)

test('keys of both curves are made in a token, found again, and sign what OpenSSL verifies', async (t) => {
  const tokens = softTokens(t, 'vault')
  const openssl = withPeer(t, 'openssl')
  if (tokens === null || openssl === null) return
  const pkcs11 = opened(t, tokens.module, {})
  const folder = tempFolder(t)
  for (const [label, curve, digest] of [
    ['root', 'P-256', '-sha256'],
    ['root 384', 'P-384', '-sha384'],
  ] as const) {
    const spki = await pkcs11.make(place(label), curve)
    assert.deepEqual(await pkcs11.find(place(label)), spki)
    const signature = await pkcs11.sign(place(label), spki, data)
    const file = (name: string, content: Uint8Array): string => {
      fs.writeFileSync(path.join(folder, name), content)
      return path.join(folder, name)
    }
    const args = [
      '-verify',
      file('key', spki),
      '-keyform',
      'DER',
      '-signature',
      file('signature', derSignature(signature)),
    ]
    const said = execFileSync(openssl, ['dgst', digest, ...args, file('data', data)]).toString()
    assert.match(said, /Verified OK/)
  }
})

test('a key does not leave its token, and another program signs with it as well', async (t) => {
  const tokens = softTokens(t, 'vault')
  const tool = withPeer(t, 'pkcs11-tool')
  if (tokens === null || tool === null) return
  await opened(t, tokens.module, {}).make(place('root'), 'P-256')
  const args = ['--module', tokens.module, '--token-label', 'vault', '--login', '--pin', tokens.pin, '--list-objects']
  const listed = execFileSync(tool, args, { env: { ...process.env, ...tokens.env }, stdio: 'pipe' }).toString()
  assert.match(
    listed,
    /Private Key Object; EC\n\s+label:\s+root\n[^]*Access:\s+sensitive, always sensitive, never extract/,
  )
})

test('what is not there is named, with the next step', async (t) => {
  const tokens = softTokens(t, 'vault', 'twin', 'twin')
  if (tokens === null) return
  const pkcs11 = opened(t, tokens.module, {})
  await pkcs11.make(place('root'), 'P-256')
  await assert.rejects(pkcs11.find(place('gone')), unavailable(/no EC private key gone in the token vault/))
  await assert.rejects(
    pkcs11.make(place('root'), 'P-256'),
    unavailable(/there is a key root in the token vault already/),
  )
  await assert.rejects(pkcs11.find(place('root', 'safe')), unavailable(/the token safe is not there \(there: .*vault/))
  await assert.rejects(pkcs11.find(place('root', 'twin')), unavailable(/2 tokens have the label twin/))
  const missing = opened(t, '/nonexistent/token.so', {})
  await assert.rejects(missing.find(place('root')), unavailable(/\/nonexistent\/token\.so cannot be loaded/))
  const none = opened(t, tokens.pinFile, {})
  await assert.rejects(none.find(place('root')), unavailable(/cannot be loaded/))
})

test('a signature that is not by the key on record is not used', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const pkcs11 = opened(t, tokens.module, {})
  await pkcs11.make(place('root'), 'P-256')
  const other = await pkcs11.make(place('other'), 'P-256')
  await assert.rejects(pkcs11.sign(place('root'), other, data), unavailable(/not by the key that is on record/))
})

test('a token that was pulled is an error, and signs again once it is back', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const clock = manualClock(0)
  const pkcs11 = opened(t, tokens.module, { clock })
  const spki = await pkcs11.make(place('root'), 'P-256')
  const sign = () => pkcs11.sign(place('root'), spki, data)
  await sign()
  tokens.pull()
  await assert.rejects(sign(), unavailable(/the token vault is not there/))
  assert.match(textOf(pkcs11), /the token vault is not there/)
  tokens.putBack()
  // It is left alone for a second first.
  await assert.rejects(sign(), unavailable(/the token vault is not there/))
  clock.advance(1000)
  assert.ok(isSigned(spki, await sign()))
  assert.deepEqual(pkcs11.troubles(), [])
  // One that was away between two signatures costs neither of them.
  tokens.pull()
  tokens.putBack()
  assert.ok(isSigned(spki, await sign()))
})

test('a token that is away does not keep another from signing', async (t) => {
  const tokens = softTokens(t, 'vault', 'plane')
  if (tokens === null) return
  const pkcs11 = opened(t, tokens.module, {})
  const spki = await pkcs11.make(place('issuing', 'plane'), 'P-256')
  await assert.rejects(pkcs11.sign(place('root', 'safe'), spki, data), unavailable(/safe is not there/))
  assert.ok(isSigned(spki, await pkcs11.sign(place('issuing', 'plane'), spki, data)))
})

test('a key that is gone does not keep the others in its token from signing', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const clock = manualClock(0)
  const pkcs11 = opened(t, tokens.module, { clock })
  const spki = await pkcs11.make(place('issuing'), 'P-256')
  const gone = unavailable(/no EC private key root in the token vault/)
  await assert.rejects(pkcs11.sign(place('root'), spki, data), gone)
  assert.ok(isSigned(spki, await pkcs11.sign(place('issuing'), spki, data)))
  // It is left alone for a second, and still said, though another one works.
  assert.match(textOf(pkcs11), /no EC private key root/)
  await assert.rejects(pkcs11.sign(place('root'), spki, data), gone)
})

test('a key that is another one once its token is back does not keep the others in it from signing', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const clock = manualClock(0)
  const pkcs11 = opened(t, tokens.module, { clock })
  const issuing = await pkcs11.make(place('issuing'), 'P-256')
  await pkcs11.make(place('root'), 'P-256')
  tokens.pull()
  await assert.rejects(pkcs11.sign(place('root'), issuing, data), unavailable(/the token vault is not there/))
  tokens.putBack()
  clock.advance(30_000)
  await pkcs11.lookAgain(() => true)
  assert.match(textOf(pkcs11), /^the key root in the token vault is another one than is on record$/)
  assert.ok(isSigned(issuing, await pkcs11.sign(place('issuing'), issuing, data)))
  // Another one has taken its place.
  await pkcs11.lookAgain(() => false)
  assert.deepEqual(pkcs11.troubles(), [])
})

test('a PIN that was refused is not tried again when its file was away for a moment', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  let pin: string | null = '000000'
  const clock = manualClock(0)
  const pinOf = (): string => {
    if (pin === null) throw new Pkcs11Unavailable('pin', 'there is no file', 'Put it there')
    return pin
  }
  const pkcs11 = opened(t, tokens.module, { clock, pinOf })
  const refused = unavailable(/refuses the PIN/)
  await assert.rejects(pkcs11.make(place('root'), 'P-256'), refused)
  pin = null
  await assert.rejects(pkcs11.make(place('root'), 'P-256'), refused)
  pin = '000000'
  clock.advance(60_000)
  tokens.pull()
  // Had it asked the token, it would say that it is not there.
  await assert.rejects(pkcs11.make(place('root'), 'P-256'), refused)
})

test('a PIN that was refused is not tried again before it has changed', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  let pin = '000000'
  let read = 0
  const clock = manualClock(0)
  const pkcs11 = opened(t, tokens.module, { clock, pinOf: () => (read++, pin) })
  const refused = unavailable(/^the token vault refuses the PIN \(C_Login: the PIN is wrong \(0xa0\)\)$/)
  await assert.rejects(pkcs11.make(place('root'), 'P-256'), refused)
  clock.advance(60_000)
  tokens.pull()
  // Had it asked the token, it would say that it is not there.
  await assert.rejects(pkcs11.make(place('root'), 'P-256'), refused)
  tokens.putBack()
  assert.ok(!textOf(pkcs11).includes(pin))
  pin = tokens.pin
  await pkcs11.make(place('root'), 'P-256')
  assert.ok(read < 8)
})

test('a token that takes 50 ms a signature holds up no timer, and serves those who wait in turn', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const pkcs11 = opened(t, tokens.module, { limits: { delayMs: 50 } })
  const spki = await pkcs11.make(place('root'), 'P-256')
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  const startedMs = performance.now()
  const signatures = await Promise.all(Array.from({ length: 8 }, () => pkcs11.sign(place('root'), spki, data)))
  clearInterval(timer)
  assert.ok(performance.now() - startedMs >= 8 * 50)
  assert.ok(signatures.every((signature) => isSigned(spki, signature)))
  // On a machine that does nothing else it is 400: half a tick for each signature would mean that it had waited for them.
  assert.ok(ticks > 40, `${ticks} ticks`)
  const many = await Promise.allSettled(Array.from({ length: 80 }, () => pkcs11.find(place('root'))))
  assert.ok(many.filter(({ status }) => status === 'rejected').length >= 10, 'more than 64 do not wait')
})

test('a call that hangs costs its thread: the next one has another', async (t) => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const clock = manualClock(0)
  const usual = opened(t, tokens.module, {})
  const spki = await usual.make(place('root'), 'P-256')
  const pkcs11 = opened(t, tokens.module, { clock, limits: { callMs: 1500, delayMs: 6000 } })
  const hung = pkcs11.sign(place('root'), spki, data)
  const behind = pkcs11.find(place('root'))
  const silent = unavailable(/has not answered within 1\.5 s/)
  await Promise.all([assert.rejects(hung, silent), assert.rejects(behind, silent)])
  const found = await eventually('another thread to answer', () => {
    clock.advance(30_000)
    return pkcs11.find(place('root'))
  })
  assert.deepEqual(found, spki)
})

/** A process of its own whose token does not return. `meanwhile` runs when the token is asked. */
const endsWhileAsked = async (t: TestContext, callMs: number, meanwhile: string, said: RegExp): Promise<void> => {
  const tokens = softTokens(t, 'vault')
  if (tokens === null) return
  const spki = await opened(t, tokens.module, {}).make(place('root'), 'P-256')
  const source = (name: string): string => JSON.stringify(path.resolve(import.meta.dirname, '../../src/platform', name))
  // In a file: flags for a text on the command line would go to the thread as well, which then would not start.
  const script = path.join(tempFolder(t), 'asks.mjs')
  fs.writeFileSync(
    script,
    `
    import { openPkcs11 } from ${source('pkcs11.ts')}
    import { systemClock } from ${source('clock.ts')}
    import { systemTimers } from ${source('timers.ts')}
    const parts = { library: ${JSON.stringify(tokens.module)}, pinOf: () => '${pinOfTest}', clock: systemClock, timers: systemTimers }
    const pkcs11 = openPkcs11({ ...parts, limits: { callMs: ${callMs}, delayMs: 600_000 } })
    const key = ${JSON.stringify(place('root'))}
    await pkcs11.find(key)
    const signing = pkcs11.sign(key, Buffer.from('${Buffer.from(spki).toString('hex')}', 'hex'), Buffer.of(1))
    ${meanwhile}
    await signing.catch((error) => {
      console.log(error.message)
      process.exitCode = 3
    })
  `,
  )
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanup(t, () => void child.kill('SIGKILL'))
  const heard = text(child.stdout)
  const [code] = await within('the process to end', 30_000, once(child, 'exit'))
  assert.equal(code, 3)
  assert.match(await heard, said)
}

test('a process ends although a call of its token never returns', (t) =>
  endsWhileAsked(t, 300, '', /has not answered within 0\.3 s/))

// As a plane that is stopped while a token thinks: the time limit of the call is not over yet.
test('a process that is stopped while a call of its token is under way ends', (t) =>
  endsWhileAsked(t, 60_000, 'setTimeout(() => pkcs11.close(), 500)', /the plane is stopping/))
