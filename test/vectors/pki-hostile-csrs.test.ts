import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import { parseCsr, parseCsrAside } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { systemClock } from '#platform/clock.ts'
import { silentLog } from '#platform/log.ts'
import { systemTimers } from '#platform/timers.ts'
import { openProofVerifier } from '#plane/boot/proof-verifier.ts'
import { goodCsr, hostileCsrs, largestGoodCsr } from './pki-hostile-csrs.ts'

const core = { clock: systemClock, timers: systemTimers, log: silentLog }
const onThread = openProofVerifier(core, true)
const together = openProofVerifier(core, false)
after(() => onThread.close())

suite('a request is refused when', () => {
  for (const { wrong, pem, why } of hostileCsrs()) {
    test(wrong, async () => {
      const answer = parseCsr(pem)
      assert.equal(answer.kind, 'malformed')
      assert.match(answer.why, why)
      for (const { verify } of [onThread, together]) assert.deepEqual(await parseCsrAside(pem, verify), answer)
    })
  }
})

test('no hostile request costs more than a few good ones', () => {
  const key = generateKey('p256')
  const good = bestMs(() => parseCsr(goodCsrText))
  const goodP384 = bestMs(() => parseCsr(goodP384Text))
  for (const { wrong, pem } of hostileCsrs()) {
    const ratio = bestMs(() => parseCsr(pem)) / Math.max(good, goodP384)
    assert.ok(ratio < 10, `${wrong}: ${ratio.toFixed(1)} times`)
  }
  const largest = largestGoodCsr(key)
  assert.equal(parseCsr(largest).kind, 'csr')
  assert.ok(bestMs(() => parseCsr(largest)) / good < 20)
})

const goodCsrText = goodCsr(generateKey('p256'))
const goodP384Text = goodCsr(generateKey('p384'))

test('a good request is the same whoever checks its signature, also of an Ed25519 key', async () => {
  for (const pem of [goodCsrText, goodP384Text, goodCsr(generateKey('ed25519'))]) {
    const answer = parseCsr(pem)
    assert.equal(answer.kind, 'csr')
    for (const { verify } of [onThread, together]) assert.deepEqual(await parseCsrAside(pem, verify), answer)
  }
})

/** The best of so many that some run undisturbed also on a busy machine: a call is far shorter than its turn at the processor. */
const bestMs = (run: () => unknown): number => {
  let best = Infinity
  for (let round = 0; round < 30; round++) {
    const from = performance.now()
    run()
    best = Math.min(best, performance.now() - from)
  }
  return best
}
