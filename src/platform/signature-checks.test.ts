import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { openSignatureChecks, type SignatureCheck, type SignatureChecks } from './signature-checks.ts'

const open = (t: TestContext): SignatureChecks => {
  const checks = openSignatureChecks()
  t.after(() => checks.close())
  return checks
}

type Pair = { readonly publicKey: KeyObject; readonly privateKey: KeyObject }

const signed = ({ publicKey, privateKey }: Pair, digest: string | null, text = 'signed'): SignatureCheck => {
  const data = Buffer.from(text)
  const key = publicKey.export({ format: 'der', type: 'spki' })
  return { digest, key, data, signature: sign(digest, data, privateKey) }
}

const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const ed25519 = generateKeyPairSync('ed25519')
const good = signed(p256, 'sha256')

/** The thread that is started while `run` is under way. */
const threadOf = async (run: () => Promise<unknown>): Promise<Worker> => {
  const [[worker]] = (await Promise.all([once(process, 'worker'), run()])) as [[Worker], unknown]
  return worker
}

test('a signature by the key is valid, of every type of key', async (t) => {
  const checks = open(t)
  for (const check of [good, signed(p256, 'sha512'), signed(p384, 'sha384'), signed(ed25519, null)])
    assert.equal(await checks.verify(check), true)
})

test('a signature over something else, by another key or cut short is not valid', async (t) => {
  const checks = open(t)
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const wrong: readonly SignatureCheck[] = [
    { ...good, data: Buffer.from('Signed') },
    { ...good, digest: 'sha384' },
    { ...good, key: signed(other, 'sha256').key },
    { ...good, signature: good.signature.subarray(0, -1) },
    { ...good, signature: new Uint8Array() },
    { ...signed(ed25519, null), signature: new Uint8Array(64) },
  ]
  for (const check of wrong) assert.equal(await checks.verify(check), false)
})

test('a key that cannot be imported has signed nothing', async (t) => {
  const checks = open(t)
  const offCurve = Buffer.from(good.key)
  offCurve[offCurve.length - 1] = (offCurve.at(-1) ?? 0) ^ 1
  for (const key of [offCurve, new Uint8Array(), good.key.subarray(0, -1)])
    assert.equal(await checks.verify({ ...good, key }), false)
})

test('a check that fails is a fault by itself, and those beside it are answered', async (t) => {
  const checks = open(t)
  const [before, failed, after] = await Promise.allSettled([
    checks.verify(good),
    checks.verify({ ...good, digest: 'no digest' }),
    checks.verify({ ...good, data: Buffer.from('Signed') }),
  ])
  assert.deepEqual([before, after], [fulfilled(true), fulfilled(false)])
  assert(failed?.status === 'rejected')
  assert.match(String(failed.reason), /a signature could not be checked: .*digest/i)
})

const fulfilled = (value: boolean) => ({ status: 'fulfilled', value })

test('many checks at once have each its own answer, in the order in which they were asked for', async (t) => {
  const checks = open(t)
  const isGood = Array.from({ length: 100 }, (_, at) => at % 3 !== 0)
  const order: number[] = []
  const answers = await Promise.all(
    isGood.map(async (right, at) => {
      const check = signed([p256, ed25519][at % 2] ?? p256, at % 2 === 0 ? 'sha256' : null, `check ${at}`)
      const answer = await checks.verify(right ? check : { ...check, data: Buffer.from('another') })
      order.push(at)
      return answer
    }),
  )
  assert.deepEqual(answers, isGood)
  assert.deepEqual(
    order,
    isGood.map((_, at) => at),
  )
})

test('what happens to the bytes after the call changes nothing', async (t) => {
  const checks = open(t)
  const data = Buffer.from(good.data)
  const answer = checks.verify({ ...good, data })
  data.fill(0)
  assert.equal(await answer, true)
})

test('when the thread ends, every check that waits for it is a fault, and the next one gets a new thread', async (t) => {
  const checks = open(t)
  const worker = await threadOf(() => checks.verify(good))
  // More than it answers in the turn in which they are handed over.
  const settled = Promise.allSettled(Array.from({ length: 2000 }, () => checks.verify(good)))
  setImmediate(() => void worker.terminate())
  const faults = (await settled).filter((one) => one.status === 'rejected')
  assert.ok(faults.length > 0)
  for (const { reason } of faults) assert.match(String(reason), /the thread that checks signatures ended/)
  const [next, answer] = await Promise.all([once(process, 'worker'), checks.verify(good)])
  assert.notEqual(next[0], worker)
  assert.equal(answer, true)
})

test('a thread that fails is a fault of its checks, with the reason, and the next one gets a new thread', async (t) => {
  const checks = open(t)
  const worker = await threadOf(() => checks.verify(good))
  // Before the check, in the same turn. It throws, as a bug of the thread would.
  setImmediate(() => worker.postMessage('no list of checks'))
  await assert.rejects(checks.verify(good), (error: Error) => error.cause instanceof TypeError)
  assert.equal(await checks.verify(good), true)
})

test('after the end every check is a fault, and none that was asked for before is left without an answer', async (t) => {
  const checks = open(t)
  const worker = await threadOf(() => checks.verify(good))
  const handedOver = checks.verify(good)
  const settled = assert.rejects(handedOver, /the process is stopping/)
  await new Promise((resolve) => setImmediate(resolve))
  const collected = assert.rejects(checks.verify(good), /the process is stopping/)
  const gone = once(worker, 'exit')
  await checks.close()
  await Promise.all([settled, collected, gone])
  await assert.rejects(checks.verify(good), /the process is stopping/)
  await checks.close()
})

test('without a check there is no thread, and its end is none either', async () => {
  let threads = 0
  const count = (): void => void threads++
  process.on('worker', count)
  const checks = openSignatureChecks()
  await checks.close()
  await assert.rejects(checks.verify(good), /the process is stopping/)
  process.off('worker', count)
  assert.equal(threads, 0)
})

test('a process ends when its checks are answered, and not before', () => {
  const [key, data, signature] = [good.key, good.data, good.signature].map(
    (bytes) => `Buffer.from('${Buffer.from(bytes).toString('base64')}', 'base64')`,
  )
  const program = `import('${import.meta.resolve('./signature-checks.ts')}').then(({ openSignatureChecks }) => {
    const check = { digest: 'sha256', key: ${key}, data: ${data}, signature: ${signature} }
    void openSignatureChecks().verify(check).then((isValid) => console.log(isValid))
  })`
  const ran = spawnSync(process.execPath, ['--eval', program], { encoding: 'utf8', timeout: 60_000 })
  assert.deepEqual([ran.stdout, ran.stderr, ran.status], ['true\n', '', 0])
})

test('an answer that waits while the thread is ended does not let the process go before that', () => {
  const { privateKey, publicKey } = p384
  const [key, secret] = [
    publicKey.export({ format: 'pem', type: 'spki' }),
    privateKey.export({ format: 'pem', type: 'pkcs8' }),
  ].map((pem) => JSON.stringify(pem))
  const program = `Promise.all([import('${import.meta.resolve('./signature-checks.ts')}'), import('node:crypto')]).then(async ([{ openSignatureChecks }, crypto]) => {
    const checks = openSignatureChecks()
    const data = Buffer.from('signed')
    const check = { digest: 'sha384', data, key: crypto.createPublicKey(${key}).export({ format: 'der', type: 'spki' }),
      signature: crypto.sign('sha384', data, ${secret}) }
    await checks.verify(check)
    const asked = Array.from({ length: 200 }, () => checks.verify(check).catch(() => {}))
    await new Promise((resolve) => setTimeout(resolve, 5))
    for (const until = performance.now() + 30; performance.now() < until; );
    await checks.close()
    await Promise.all(asked)
    console.log('closed')
  })`
  const ran = spawnSync(process.execPath, ['--eval', program], { encoding: 'utf8', timeout: 60_000 })
  assert.deepEqual([ran.stdout, ran.stderr, ran.status], ['closed\n', '', 0])
})
