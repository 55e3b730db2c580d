import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Output } from './output.ts'
import { outputSentences, outputStandings, type StandingFacts } from './output-standing.ts'
import type { OutputShown } from './outputs-shown.ts'
import type { Program, ProgramLeaf } from './program.ts'

const nowMs = 1_000_000
const leaf = (serial: string, notAfterMs = nowMs + 1): ProgramLeaf =>
  ({ issuer: 'i', serial, sha256: '', issuedAtMs: 0, notAfterMs, names: [] }) as unknown as ProgramLeaf
const program = (changes: Partial<Program>): Program => ({
  ...{ node: 'gpu-001', epoch: 1, output: 'web', current: null, former: null, ended: null },
  ...changes,
})
const shown = (serial: string | null, failure: string | null = null) => ({
  name: 'web',
  place: '/tls/web',
  serial,
  failure,
})

type Facts = Partial<Pick<StandingFacts, 'programs' | 'epoch'>> & { readonly shown?: readonly OutputShown[] | null }

const of = ({ shown: said = [], ...facts }: Facts) =>
  outputStandings({
    ...{ outputs: [{ name: 'web' } as Output], epoch: 1, programs: [], nowMs, ...facts },
    report: said === null ? null : { epoch: 1, outputs: said },
  })

test('an output is in place when its agent says so of the newest leaf, and every other one says why it is not', () => {
  const cases: readonly (readonly [Facts, string, RegExp | null])[] = [
    [{ programs: [program({ current: leaf('b') })], shown: [shown('b')] }, 'in_place', null],
    [{ programs: [program({ current: leaf('b') })], shown: [shown('a')] }, 'issued', /certificate b is signed/],
    [{ programs: [program({ current: leaf('b') })], shown: null }, 'issued', /has not said/],
    [{ programs: [program({ current: leaf('b') })], shown: [shown('b', 'nginx did not reload')] }, 'failed', /reload/],
    [{ shown: [shown(null, 'This host has no place for it')] }, 'failed', /no place for it/],
    [{ programs: [program({ current: leaf('b', nowMs) })], shown: [shown('b')] }, 'expired', /has expired/],
    [{ programs: [program({ ended: { atMs: 1, why: 'a name was taken' } })] }, 'no_leaf', /ended: a name was taken/],
    [{}, 'no_leaf', /no certificate yet/],
    [{ shown: null }, 'no_leaf', /one of 0\.3 knows none/],
    // What was said in an earlier epoch is about other leaves, or about the machine before.
    [{ epoch: 2, shown: [shown('b', 'the disk is full')] }, 'no_leaf', /has said nothing of outputs/],
    [{ epoch: 2, programs: [program({ current: leaf('b') })], shown: [shown('b')] }, 'no_leaf', /has said nothing/],
  ]
  for (const [facts, state, why] of cases) {
    const [standing] = of(facts)
    assert.equal(standing?.state, state)
    const sentences = outputSentences(of(facts))
    if (why === null) assert.deepEqual(sentences, [])
    else assert.match(sentences.join(), new RegExp(`^Output web is .*in place.*: .*${why.source}.*\\.$`))
  }
})

test('an output whose newest leaf is in place is not said to be missing when something failed after that', () => {
  const programs = [program({ current: leaf('b') })]
  const sentences = (facts: Facts) => outputSentences(of(facts))
  assert.deepEqual(sentences({ programs, shown: [shown('b', 'Reload nginx is not done')] }), [
    'Output web is in place, and something after that failed: its agent says: Reload nginx is not done.',
  ])
  assert.deepEqual(sentences({ programs: [program({ current: leaf('b', nowMs) })], shown: [shown('b')] }), [
    'Output web is in place, and something after that failed: its certificate has expired, and its agent has not got another.',
  ])
  // The leaf before is still there: the newest is not.
  assert.deepEqual(sentences({ programs, shown: [shown('a', 'The disk is full.')] }), [
    'Output web is not in place: its agent says: The disk is full.',
  ])
  assert.deepEqual(sentences({ shown: [shown(null, 'This host has no place for it')] }), [
    'Output web is not in place: its agent says: This host has no place for it.',
  ])
})
