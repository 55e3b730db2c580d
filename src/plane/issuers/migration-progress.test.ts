import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outsideIssuer } from '../../../test/fakes/issuer-rows.ts'
import type { IssuerId } from '#domain/core/node.ts'
import { underOnly, type MigrationParts } from './migration-progress.ts'

/** Roots by issuer. `shared` hangs under both. */
const roots: Readonly<Record<string, readonly IssuerId[]>> = { old: ['shared', 'first'], new: ['shared', 'second'] }
const parts: Pick<MigrationParts, 'known' | 'book'> = {
  known: { find: (name) => (roots[name] === undefined ? null : outsideIssuer({ name, roots: roots[name] })) },
  book: {
    authoritiesOf: (issuer) => issuer.roots,
    find: (id) => (id === 'ours' ? null : ({ value: { id }, version: 1 } as never)),
    withdrawn: () => [],
  },
}

test('a leaf under a CA that both issuers hang under is of neither: it stays good', () => {
  const under = (name: string, other: string) =>
    ['ours', 'shared', 'first', 'second'].filter(underOnly(parts, name, other))
  assert.deepEqual([under('old', 'new'), under('new', 'old')], [['first'], ['second']])
  assert.deepEqual([under('built-in', 'old'), under('old', 'built-in')], [['ours'], ['shared', 'first']])
})
