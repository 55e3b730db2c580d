import type { OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { changedParts, decideChangeIssuer, decideRetire } from '#domain/issuers/change-issuer.ts'
import { isRefusal, refuse, type Refusal } from '#domain/core/refusal.ts'
import { declaredOf } from '#domain/plans/plan-effects.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import {
  askedIn,
  declaredOf as declaredIssuerOf,
  readIssuer,
  retireFacts,
  staleSecrets,
  standing,
} from '#plane/issuers/change-issuers.ts'
import type { DeclaredIssuer } from '#wire/issuers/issuer-settings.ts'
import { documentKind, type DocumentKind } from './document-kind.ts'

type Found = { readonly name: string; readonly issuer: OutsideIssuer; readonly declared: DeclaredIssuer }

const subjectOf = (name: string): string => `issuer ${name}`

const listed = documentKind<DeclaredIssuer, DeclaredIssuer, Found>({
  section: 'issuers',
  nameOf: ({ name }) => name,
  async read({ core }) {
    const rows = (await readIssuers(core.store)).filter(
      ({ value: { state, forged } }) => state.kind !== 'retired' && !forged,
    )
    return Promise.all(
      rows.map(async ({ value: issuer, version }) => {
        const declared = await declaredIssuerOf(core, issuer)
        return { version, value: { name: issuer.name, issuer, declared } }
      }),
    )
  },
  render: ({ declared }) => declared,
  parse: (item) => item,
  async decide({ core }, wanted, { by }) {
    const { name } = wanted
    const issuer = await readIssuer(core, name)
    if (isRefusal(issuer)) return needsSecrets(name)
    const asked = askedIn(wanted)
    if (isRefusal(asked)) return asked
    const stale = staleSecrets(asked, issuer.value)
    if (stale !== null) return stale
    const verdict = decideChangeIssuer({ issuer, asked, secrets: null, ...(await standing(core, by)) })
    if (verdict.kind === 'unchanged') return null
    if (isRefusal(verdict)) return verdict
    const effect = `changed: ${changedParts(issuer.value, verdict.issuer).join(', ')}`
    const subject = subjectOf(name)
    return { subject, effects: [declaredOf(subject, { effect, version: issuer.version })], change: verdict.change }
  },
  async remove({ core }, { value: { issuer: value }, version }, { by, nowMs }) {
    const issuer = { value, version }
    const verdict = decideRetire({ issuer, by, nowMs, ...(await retireFacts(core, value, nowMs)) })
    if (isRefusal(verdict)) return verdict
    const subject = subjectOf(value.name)
    return { subject, effects: [declaredOf(subject, { effect: 'retired', version })], change: verdict.change }
  },
})

/** They are in no document. */
const needsSecrets = (name: string): Refusal =>
  refuse('OUTSIDE_ISSUER_NOT_FOUND', `${name}: add it with its secrets first: muster issuer add ${name}`)

/** Left out where there are none: a plane of the release before refuses a document with a section that it does not know. */
export const issuerKind: DocumentKind = {
  ...listed,
  async render(reading) {
    const section = (await listed.render(reading)) as readonly unknown[]
    return section.length === 0 ? undefined : section
  },
}
