import { isRefusal, refuseField } from '#domain/core/refusal.ts'
import { declaredOf } from '#domain/plans/plan-effects.ts'
import {
  changedFields,
  decideAddWorkerIssuer,
  decideChangeWorkerIssuer,
  decideRemoveWorkerIssuer,
  signerOf,
  type WorkerIssuer,
} from '#domain/workers/worker-issuer.ts'
import { rowPages } from '#plane/core/pages.ts'
import { keysIn, readWorkerIssuer } from '#plane/workers/worker-issuers.ts'
import { settingsOf, workerIssuerDocument, type CreateWorkerIssuerRequest } from '#wire/workers/worker-issuer-api.ts'
import { documentKind, type DocumentKind } from './document-kind.ts'

const subjectOf = (name: string): string => `worker-issuer ${name}`

const listed = documentKind<CreateWorkerIssuerRequest, CreateWorkerIssuerRequest, WorkerIssuer>({
  section: 'workerIssuers',
  nameOf: ({ name }) => name,
  async read({ core }) {
    const pages = await Array.fromAsync(rowPages(core.store, 'worker-issuer', ({ name }) => name))
    return pages.flat().filter(({ value }) => value.removedAtMs === null)
  },
  render: workerIssuerDocument,
  parse: (item) => item,
  async decide({ core }, wanted, { by, nowMs }) {
    const keys = keysIn(wanted)
    if (isRefusal(keys)) return keys
    const { name } = wanted
    const { existing, ...others } = await readWorkerIssuer(core, name)
    const asked = settingsOf(signedAsBefore(wanted, existing?.value ?? null), keys)
    const subject = subjectOf(name)
    if (existing === null || existing.value.removedAtMs !== null) {
      const verdict = decideAddWorkerIssuer({ name, existing, ...others, asked, by, nowMs })
      if (isRefusal(verdict)) return verdict
      const effects = [declaredOf(subject, { effect: 'created', version: existing?.version ?? null })]
      return { subject, effects, change: verdict.change }
    }
    const verdict = decideChangeWorkerIssuer({ name, existing, ...others, asked, by, nowMs })
    if (verdict.kind === 'unchanged') return null
    if (isRefusal(verdict)) return verdict
    const effect = `changed: ${changedFields(existing.value, verdict.issuer).join(', ')}`
    return { subject, effects: [declaredOf(subject, { effect, version: existing.version })], change: verdict.change }
  },
  async remove(_reading, row, { by, nowMs }) {
    const verdict = decideRemoveWorkerIssuer(row, by, nowMs)
    if (isRefusal(verdict)) return verdict
    const subject = subjectOf(row.value.name)
    const effects = [declaredOf(subject, { effect: 'removed; its workers are refused', version: row.version })]
    return { subject, effects, change: verdict.change }
  },
})

/** What a document leaves out stays as it is. */
const signedAsBefore = (wanted: CreateWorkerIssuerRequest, existing: WorkerIssuer | null): CreateWorkerIssuerRequest =>
  existing === null || existing.removedAtMs !== null ? wanted : { signed_by: signerOf(existing), ...wanted }

/** Left out where there are none: a plane of the release before refuses a document with a section that it does not know. */
export const workerIssuerKind: DocumentKind = {
  ...listed,
  async render(reading) {
    const section = (await listed.render(reading)) as readonly unknown[]
    return section.length === 0 ? undefined : section
  },
  // Each of them is decided by what is stored, where the others of the document are not yet.
  async decide(reading, document, outlook) {
    const names = new Map<string, string>()
    for (const [at, { name, iss, aud, sub }] of (document.workerIssuers ?? []).entries()) {
      const claims = JSON.stringify([iss, aud, sub])
      const other = names.get(claims) ?? name
      if (other !== name)
        return refuseField(
          'WORKER_ISSUER_EXISTS',
          `document.workerIssuers.${at}.sub`,
          `${other} has the same issuer, audience and subject`,
        )
      names.set(claims, name)
    }
    return listed.decide(reading, document, outlook)
  },
}
