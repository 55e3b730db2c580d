// One kind of thing that a document declares (document-kinds.ts lists them all). Each decides by the rules of its own routes; what all
// of them share is here: names come once, and a refusal names the place in the document.

import type { Attribution, Change, Row } from '#domain/core/change.ts'
import type { DomainSettings } from '#domain/core/domain-settings.ts'
import type { HardwareProfile } from '#domain/core/hardware-profile.ts'
import type { PlanEffect } from '#domain/plans/plan.ts'
import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { Core } from '#plane/core/core.ts'
import type { TaggedNode } from '#plane/fleet/change-hardware.ts'
import type { UnusedTokens } from '#plane/settings/delete-profile.ts'
import type { LeafLimit } from '#plane/settings/policy-routes.ts'
import type { DocumentBody, Section } from '#wire/plans/document-api.ts'

/** What decisions read. */
export type Reading = { readonly core: Pick<Core, 'store' | 'clock' | 'timers'>; readonly authority: LeafLimit }

/** The domain as it is once the things before in the document are committed, for decisions that rely on them. */
export type Outlook = {
  readonly by: Attribution
  readonly nowMs: number
  /** Every profile, with the version of its row that was read; 0: there was none. */
  readonly profiles: Map<string, number>
  /** By tag. */
  readonly hardware: Map<string, HardwareProfile>
  /** Both read once for the whole document, and only where something asks. */
  readonly nodesWithTags: () => Promise<readonly TaggedNode[]>
  readonly unusedTokens: () => Promise<UnusedTokens>
  domain: Row<DomainSettings>
}

/** What becomes of one thing. */
export type DocumentStep = {
  /** `profile edge` */
  readonly subject: string
  readonly effects: readonly PlanEffect[]
  readonly change: Change
}

/** `Item`: one of its section. `Wanted`: the same in the words of the decision. `Found`: what the store has. */
export type KindRules<Item, Wanted, Found> = {
  readonly section: Section
  nameOf(of: Item | Found): string
  /** All that are there, in the order of their names. */
  read(reading: Reading): Promise<readonly Row<Found>[]>
  /** `parse` and `decide` make the same of it again. */
  render(found: Found): Item
  parse(item: Item): Wanted
  /** What is to be written; null: it is so already. */
  decide(reading: Reading, wanted: Wanted, outlook: Outlook): Promise<DocumentStep | Refusal | null>
  /** What is to be written where a document leaves it out; null: it is never deleted. */
  remove: ((reading: Reading, found: Row<Found>, outlook: Outlook) => Promise<DocumentStep | Refusal>) | null
}

export type DocumentKind = {
  readonly section: Section
  /** As the section of a document. */
  render(reading: Reading): Promise<unknown>
  /** Of everything in the section; null: it is so already. */
  decide(
    reading: Reading,
    document: DocumentBody,
    outlook: Outlook,
  ): Promise<readonly (DocumentStep | null)[] | Refusal>
  /** Of everything that the section leaves out. */
  prune(reading: Reading, document: DocumentBody, outlook: Outlook): Promise<readonly DocumentStep[] | Refusal>
}

/** A section with a list of things. */
export const documentKind = <Item, Wanted, Found>(rules: KindRules<Item, Wanted, Found>): DocumentKind => {
  const { section, nameOf } = rules
  const itemsIn = (document: DocumentBody) => (document[section] ?? []) as readonly Item[]
  return {
    section,
    render: async (reading) => (await rules.read(reading)).map(({ value }) => rules.render(value)),
    async decide(reading, document, outlook) {
      const steps: (DocumentStep | null)[] = []
      const names = new Set<string>()
      for (const [at, item] of itemsIn(document).entries()) {
        const place = `document.${section}.${at}`
        if (names.has(nameOf(item))) return refuseField('REQUEST_INVALID', place, `${nameOf(item)} is there twice`)
        names.add(nameOf(item))
        const step = await rules.decide(reading, rules.parse(item), outlook)
        if (isRefusal(step)) return placed(step, place)
        steps.push(step)
      }
      return steps
    },
    async prune(reading, document, outlook) {
      if (rules.remove === null || document[section] === undefined) return []
      const steps: DocumentStep[] = []
      const declared = new Set(itemsIn(document).map(nameOf))
      for (const row of await rules.read(reading)) {
        if (declared.has(nameOf(row.value))) continue
        const step = await rules.remove(reading, row, outlook)
        if (isRefusal(step)) return placed(keptBy(step, nameOf(row.value)), `document.${section}`)
        steps.push(step)
      }
      return steps
    },
  }
}

const keptBy = (refusal: Refusal, name: string): Refusal => {
  const why = `${name} is not in the document, and cannot be deleted`
  return { ...refusal, detail: refusal.detail === null ? why : `${why}: ${refusal.detail}` }
}

/** A section that is one thing. */
export const soleKind = <Item, Wanted, Found>(rules: KindRules<Item, Wanted, Found>): DocumentKind => ({
  section: rules.section,
  render: async (reading) => (await rules.read(reading)).map(({ value }) => rules.render(value))[0],
  async decide(reading, document, outlook) {
    const item = document[rules.section] as Item | undefined
    if (item === undefined) return []
    const step = await rules.decide(reading, rules.parse(item), outlook)
    return isRefusal(step) ? placed(step, `document.${rules.section}`) : [step]
  },
  prune: async () => [],
})

/** Routes name the field of their own request: `set.peering`, `overlay.files.0.mode`. */
const placed = (refusal: Refusal, place: string): Refusal => {
  const path = refusal.field?.path.replace(/^(set|overlay)\.?/, '') ?? ''
  return {
    ...refusal,
    field: { path: path === '' ? place : `${place}.${path}`, unknown: refusal.field?.unknown ?? false },
  }
}

/** What a change says of itself in the journal: `KEY: OLD -> NEW`. */
export const changesIn = ({ entries }: Change): readonly string[] =>
  entries.flatMap(({ body }) => (Array.isArray(body['changes']) ? (body['changes'] as readonly string[]) : []))
