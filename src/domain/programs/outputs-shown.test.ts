import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, domainRow, nodeRow, noonMs } from '../../../test/fakes/sample-rows.ts'
import type { Condition } from '#domain/core/node.ts'
import { decideOutputsShown, outputsSeen, type OutputShown } from './outputs-shown.ts'

const shows = (shown: readonly OutputShown[], conditions: readonly Condition[] = []) =>
  decideOutputsShown({
    node: nodeRow('active', { conditions }),
    shown,
    programs: [],
    domain: domainRow(),
    by: alice,
    nowMs: noonMs,
  })

const web = (failure: string | null): OutputShown => ({ name: 'web', place: '/srv/web', serial: 'ab', failure })

const after = (shown: readonly OutputShown[], conditions: readonly Condition[] = []): readonly Condition[] => {
  const verdict = shows(shown, conditions)
  assert.ok(verdict.kind === 'decided')
  return verdict.node.conditions
}

test('what fails now is the reason, and not what failed before; the same failure at another time is no news', () => {
  const unnamed = after([web('OUTPUT_WITHOUT_NAMES: no name (web)')])
  const notReloaded = after([web('Reload nginx failed: exit code 1 (06:22:39 [emerg] no such file)')], unnamed)
  assert.deepEqual(
    notReloaded.map(({ name, reason }) => [name, reason]),
    [['output_failed', 'output web: Reload nginx failed: exit code 1']],
  )
  const later = shows([web('Reload nginx failed: exit code 1 (06:22:42 [emerg] no such file)')], notReloaded)
  assert.deepEqual(later, { kind: 'unchanged' })
  assert.deepEqual(after([web(null)], notReloaded), [])
})

test('two outputs of one name are one in figures, as the worse of them: a series comes once', () => {
  const other = { ...web(null), name: 'other' }
  assert.deepEqual(outputsSeen([web(null), other, web('it failed')], []), [
    { name: 'web', endsMs: null, inPlace: false },
    { name: 'other', endsMs: null, inPlace: true },
  ])
})
