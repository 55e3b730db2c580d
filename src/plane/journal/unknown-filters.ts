// A filter of the journal that is written wrong must not read as "nothing happened". What has neither a row nor an entry is refused, as far as
// rows and indexes tell: the journal has an index by node, and none by actor or correlation.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { everyRow } from '#plane/core/pages.ts'

/** The parts of a plane that write entries in their own name, `system:PART`, those of earlier releases included. A test finds each in the sources. */
export const systemParts: ReadonlySet<string> = new Set([
  ...[
    'admission',
    'alerts',
    'authority',
    'claims',
    'enrollment-service',
    'first-start',
    'issuers',
    'journal',
    'keys',
    'lineage',
  ],
  ...[
    'liveness',
    'names',
    'operator-keys',
    'orders',
    'plan',
    'programs',
    'receipts',
    'seals',
    'signers',
    'store',
    'tasks',
    'upgrade',
  ],
])

type Filters = { readonly node?: string; readonly actor?: string }

export const unknownFilter = async (store: Store, { node, actor }: Filters): Promise<Refusal | null> => {
  if (node !== undefined && !(await isKnownNode(store, node))) return refuse('NODE_NOT_FOUND', node)
  if (actor !== undefined && !(await isKnownActor(store, actor))) return refuse('ACTOR_NOT_FOUND', actor)
  return null
}

/** A purged node has no row, and its entries stay. */
const isKnownNode = async (store: Store, node: string): Promise<boolean> =>
  (await store.get('node', node)) !== null ||
  (await store.journal.read({ after: null, last: null, limit: 1, node, type: null })).length > 0

const isKnownActor = async (store: Store, actor: string): Promise<boolean> => {
  const [, kind, name] = /^(operator|node):(.+)$/.exec(actor) ?? []
  if (name !== undefined) return kind === 'node' ? isKnownNode(store, name) : isOperator(store, name)
  // Rows of workers are removed some time after their end; tokens and domains have entries of few kinds.
  if (/^(system|worker|token|domain):./.test(actor)) return true
  if (['anonymous', 'hardware'].includes(actor) || systemParts.has(actor)) return true
  // It may be the id of a worker, or the name of a domain.
  if (actor.includes('.')) return true
  return (
    (await isOperator(store, actor)) ||
    (await isKnownNode(store, actor)) ||
    (await store.list('token', { where: { id: actor }, after: null, limit: 1 })).length > 0
  )
}

/** Revoked keys keep their rows. */
const isOperator = async (store: Store, name: string): Promise<boolean> => {
  for await (const key of everyRow(store, 'operator-key', ({ hash }) => hash)) if (key.name === name) return true
  return false
}
