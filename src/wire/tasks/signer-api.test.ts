import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signerListView } from './signer-api.ts'

const made = (version: number) => ({ key: String(version).repeat(40), spki: 'spki', version })

test('a node counts for every signer of its statement, and for a withdrawal only when its statement says so', () => {
  const { signers } = signerListView(
    {
      number: 30,
      signers: [
        { ...made(3), firstNumber: 30, state: { kind: 'signing', sinceMs: 30 } },
        {
          ...{ ...made(2), firstNumber: 20 },
          state: { kind: 'withdrawn', sinceMs: 30, untilMs: 99, sinceNumber: 30, reason: 'stolen' },
        },
        { ...made(1), firstNumber: 10, state: { kind: 'grace', sinceMs: 20, untilMs: 99 } },
        { ...made(0), firstNumber: 1, state: { kind: 'retired', sinceMs: 10 } },
      ],
    },
    new Map([
      [10, 4],
      [20, 2],
      [30, 1],
    ]),
    [],
  )
  assert.deepEqual(
    signers.map(({ state, nodes }) => [state, nodes]),
    [
      ['signing', 1],
      ['withdrawn', 1],
      ['grace', 7],
      ['retired', null],
    ],
  )
})
