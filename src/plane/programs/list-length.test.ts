import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import type { Alert } from '#domain/alerts/alert.ts'
import { longestProgramList, type ProgramLists } from '#wire/programs/programs-api.ts'
import { listLengthSource } from './list-length.ts'

/** Lists of these lengths, each as a share of what an agent takes. */
const sourceOf = (...shares: readonly number[]) =>
  listLengthSource(
    {
      lists: async (): Promise<ProgramLists> => ({
        roots: ['root'],
        lists: shares.map((share, at) => ({
          ...{ issuer: `ca${at}`, role: 'issuing' as const, number: 1, next_update: '2030-01-01T00:00:00.000Z' },
          list: 'x'.repeat(Math.ceil(share * longestProgramList)),
        })),
      }),
    },
    'lab.example',
  )

const said = async (...shares: readonly number[]): Promise<readonly string[]> =>
  (await sourceOf(...shares).wanted()).map(
    ({ subject, severity, reason }) =>
      `${severity} ${subject} ${/list of \w+|lists of programs/.exec(reason)?.[0] ?? ''}`,
  )

test('a list that has come to half of what agents take raises an alert, long before agents refuse it', async () => {
  assert.deepEqual(await said(), [])
  assert.deepEqual(await said(0.49, 0.1), [])
  assert.deepEqual(await said(0.1, 0.5), ['warning lab.example list of ca1'])
  assert.deepEqual(await said(0.9, 0.1), ['critical lab.example list of ca0'])
})

test('lists that are too long only together raise it as well', async () => {
  assert.deepEqual(await said(0.4, 0.4, 0.4), ['warning lab.example lists of programs'])
})

test('the alert ends when the lists are clearly shorter, so that one entry does not open and end it', async () => {
  const open = wantedAlert('program_lists_long', 'lab.example', { list: 'ca0', bytes: 5, mostBytes: 10 })
  const alert = { ...open, id: 'A1', sinceMs: 1, state: { kind: 'open' } } satisfies Alert
  assert.deepEqual(await sourceOf(0.49).over?.([alert]), [])
  assert.deepEqual(await sourceOf(0.39).over?.([alert]), [alert])
})
