// What operators do to outside issuers: reads, decides, seals secrets and commits.

import {
  decideAddIssuer,
  decideChangeIssuer,
  decideDisable,
  decideEnable,
  decideRetire,
  decideTested,
  notThere,
  type AskedIssuer,
  type IssuerDecided,
} from '#domain/issuers/change-issuer.ts'
import type { Attribution, Row } from '#domain/core/change.ts'
import { isRefusal, refuse, refuseField, type Refusal } from '#domain/core/refusal.ts'
import type { IssuerAbilities, OutsideIssuer, SecretsHeld } from '#domain/issuers/outside-issuer.ts'
import { commitDecision } from '#plane/core/commit-decision.ts'
import type { Core, FlowCore } from '#plane/core/core.ts'
import { toPem } from '#pki/pem.ts'
import { sortableId } from '#platform/random.ts'
import {
  accessOf,
  declaredIssuer,
  secretsNeeded,
  secretsShown,
  type AddIssuerRequest,
  type ChangeIssuerRequest,
  type DeclaredIssuer,
} from '#wire/issuers/issuer-settings.ts'
import { knownAuthorities, readAuthorities, unfitServerRoots } from './given-authorities.ts'
import type { IssuerKinds } from './open-outside-issuers.ts'
import type { IssuerSecrets, Secrets } from './issuer-secrets.ts'
import { rowPages } from '#plane/core/pages.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import { unexpiredOf, waitingRevocations } from './orders-of-issuer.ts'

export type ChangeParts = { readonly secrets: IssuerSecrets; readonly kinds: Pick<IssuerKinds, 'unfit' | 'make'> }

export type Changed = { readonly kind: 'changed'; readonly issuer: OutsideIssuer }

const changed = ({ issuer }: { readonly issuer: OutsideIssuer }): Changed => ({ kind: 'changed', issuer })

/** What was asked for, in the words of the decision. */
export const askedIn = (body: DeclaredIssuer): AskedIssuer | Refusal => {
  if (!URL.canParse(body.url)) return refuseField('REQUEST_INVALID', 'url', 'url takes https://HOST[:PORT]')
  const unfit = unfitServerRoots(body.server_roots)
  if (unfit !== null) return unfit
  const authorities = readAuthorities(body.roots)
  if (isRefusal(authorities)) return authorities
  const access = accessOf(body)
  if ('why' in access) return refuseField('REQUEST_INVALID', access.field, access.why)
  return { url: body.url, serverRoots: body.server_roots, authorities, access }
}

const unfitSecrets = (kinds: ChangeParts['kinds'], asked: AskedIssuer, secrets: Secrets): Refusal | null => {
  const needed: readonly string[] = secretsNeeded(asked.access)
  const missing = needed.find((name) => secrets[name] === undefined)
  if (missing !== undefined) return refuseField('REQUEST_INVALID', `secrets.${missing}`, `${missing} is needed`)
  const extra = Object.keys(secrets).find((name) => !needed.includes(name))
  if (extra !== undefined)
    return refuseField('REQUEST_INVALID', `secrets.${extra}`, `${extra} does not go with this kind of issuer`)
  const unfit = kinds.unfit(asked.access, secrets)
  return unfit === null ? null : refuseField('REQUEST_INVALID', `secrets.${unfit.name}`, unfit.why)
}

/** Durable before the commit that names them; a crash in between leaves a key that no row names, which the next start sets aside. */
const withSecrets = (
  core: FlowCore,
  { secrets: kept }: ChangeParts,
  given: Secrets,
  decide: (held: SecretsHeld) => Promise<IssuerDecided | { readonly kind: 'unchanged' } | Refusal>,
) =>
  core.store.exclusively(async (): Promise<Changed | { readonly kind: 'unchanged' } | Refusal> => {
    const held = await kept.keep(given)
    const done = await commitDecision(core, () => decide(held))
    if (done.kind === 'committed') return changed(done)
    await kept.drop(held)
    return done
  })

export const addIssuer = async (
  core: FlowCore,
  parts: ChangeParts,
  body: AddIssuerRequest,
  by: Attribution,
): Promise<Changed | Refusal> => {
  const asked = askedIn(body)
  if (isRefusal(asked)) return asked
  const unfit = unfitSecrets(parts.kinds, asked, { ...body.secrets })
  if (unfit !== null) return unfit
  const given: Secrets = { ...body.secrets, ...parts.kinds.make(asked.access) }
  const id = sortableId(core.clock.nowMs(), core.random)
  const done = await withSecrets(core, parts, given, async (secrets) =>
    decideAddIssuer({ name: body.name, id, asked, secrets, ...(await standing(core, by)) }),
  )
  if (done.kind === 'unchanged') throw new Error('an issuer was added and nothing was written')
  return done
}

export const standing = async (core: Pick<FlowCore, 'store' | 'clock'>, by: Attribution) => ({
  all: await readIssuers(core.store),
  known: await knownAuthorities(core.store),
  by,
  nowMs: core.clock.nowMs(),
})

export const readIssuer = async (
  { store }: Pick<FlowCore, 'store'>,
  name: string,
): Promise<Row<OutsideIssuer> | Refusal> => {
  const row = await store.get('outside-issuer', name)
  return row === null || row.value.state.kind === 'retired' ? refuse('OUTSIDE_ISSUER_NOT_FOUND', name) : row
}

/** As a document declares it: the CA certificates that it brought are on record. */
export const declaredOf = async (core: Pick<FlowCore, 'store'>, issuer: OutsideIssuer): Promise<DeclaredIssuer> => {
  const known = await knownAuthorities(core.store)
  const under = (id: string): boolean => {
    const parent = known.find(({ row }) => row.value.id === id)?.row.value.parent
    return parent !== undefined && (issuer.roots.includes(parent) || (parent !== id && under(parent)))
  }
  const pems = known
    .filter(({ row: { value } }) => value.role.startsWith('outside-') && under(value.id))
    .map(({ row }) => toPem('CERTIFICATE', Buffer.from(row.value.der, 'base64')))
  return declaredIssuer(issuer, pems)
}

export const changeIssuer = async (
  core: FlowCore,
  parts: ChangeParts,
  name: string,
  change: ChangeIssuerRequest,
  by: Attribution,
): Promise<Changed | Refusal> => {
  const { secrets: given, ...set } = change
  const decide = async (held: SecretsHeld | null) => {
    const issuer = await readIssuer(core, name)
    if (isRefusal(issuer)) return issuer
    const no = notThere(issuer.value)
    if (no !== null) return no
    const asked = askedIn(merged(await declaredOf(core, issuer.value), set))
    if (isRefusal(asked)) return asked
    const unfit =
      given === undefined ? staleSecrets(asked, issuer.value) : unfitSecrets(parts.kinds, asked, { ...given })
    if (unfit !== null) return unfit
    return decideChangeIssuer({ issuer, asked, secrets: held, ...(await standing(core, by)) })
  }
  const before = await readIssuer(core, name)
  if (isRefusal(before)) return before
  const barred = notThere(before.value)
  if (barred !== null) return barred
  const done = await (given === undefined
    ? commitDecision(core, () => decide(null)).then((one) => (one.kind === 'committed' ? changed(one) : one))
    : withSecrets(core, parts, { ...(await madeBefore(parts, before.value)), ...given }, decide))
  if (isRefusal(done)) return done
  if (done.kind === 'unchanged') return changed({ issuer: before.value })
  const old = before.value.secrets
  if (old !== null && old.key !== done.issuer.secrets?.key) await parts.secrets.drop(old)
  return done
}

/** What the plane has made for it stays: a step-ca has the root of its renewals in its configuration. */
const madeBefore = async ({ secrets, kinds }: ChangeParts, issuer: OutsideIssuer): Promise<Secrets> => {
  const held = await secrets.find(issuer)
  if (held === null) return kinds.make(issuer.access)
  const given: readonly string[] = secretsNeeded(issuer.access)
  return Object.fromEntries(Object.entries(held).filter(([name]) => !given.includes(name)))
}

/** Of two kinds of access the one that is set counts. */
const merged = (now: DeclaredIssuer, set: Omit<ChangeIssuerRequest, 'secrets'>): DeclaredIssuer => {
  const { step_ca: stepCa, vault, ...rest } = now
  const isSet = set.step_ca !== undefined || set.vault !== undefined
  return { ...rest, ...(isSet ? {} : { ...(stepCa && { step_ca: stepCa }), ...(vault && { vault }) }), ...set }
}

/**
 * Another way of proving ourselves needs other secrets. What is sent to the server as it is goes to no other server, and to none that other
 * roots make trusted: who may change an issuer could have it sent to himself.
 */
export const staleSecrets = (
  asked: AskedIssuer,
  { url, serverRoots, secrets }: Pick<OutsideIssuer, 'url' | 'serverRoots' | 'secrets'>,
): Refusal | null => {
  const no = (name: string, why: string): Refusal => refuseField('REQUEST_INVALID', `secrets.${name}`, why)
  const missing = secretsNeeded(asked.access).find((name) => secrets?.names.includes(name) !== true)
  if (missing !== undefined) return no(missing, `with this way of proving ourselves ${missing} is needed`)
  const [shown] = secretsShown(asked.access)
  const isSame = asked.url === url && asked.serverRoots.every((root) => serverRoots.includes(root))
  return shown === undefined || isSame
    ? null
    : no(shown, `${shown} would be sent to another server: give it again, with muster issuer set`)
}

type Decide = (facts: {
  readonly issuer: Row<OutsideIssuer>
  readonly by: Attribution
  readonly nowMs: number
}) => IssuerDecided | Refusal | Promise<IssuerDecided | Refusal>

const onIssuer = async (core: FlowCore, name: string, by: Attribution, decide: Decide): Promise<Changed | Refusal> => {
  const done = await commitDecision(core, async () => {
    const issuer = await readIssuer(core, name)
    return isRefusal(issuer) ? issuer : decide({ issuer, by, nowMs: core.clock.nowMs() })
  })
  return isRefusal(done) ? done : changed(done)
}

export const disableIssuer = (core: FlowCore, name: string, why: string, by: Attribution) =>
  onIssuer(core, name, by, (facts) => decideDisable(facts, why))

export const enableIssuer = (core: FlowCore, name: string, by: Attribution) => onIssuer(core, name, by, decideEnable)

/** Of the issuer as it was tested: one that was changed meanwhile has not been. */
export const recordTest = (
  core: FlowCore,
  tested: Row<OutsideIssuer>,
  abilities: Omit<IssuerAbilities, 'testedAtMs'>,
  by: Attribution,
) =>
  onIssuer(core, tested.value.name, by, (facts) =>
    facts.issuer.version === tested.version
      ? decideTested(facts, abilities)
      : refuse('ISSUER_STATE_CONFLICT', `${tested.value.name} was changed while it was tested`),
  )

type RetireCore = Pick<Core, 'store' | 'timers'>

export const retireFacts = async (core: RetireCore, issuer: OutsideIssuer, nowMs: number) => {
  const { store } = core
  const all = (await readIssuers(store)).map(({ value }) => value)
  // Before the orders: one that is placed meanwhile relies on a row that names the issuer, and that is among these then.
  const profiles = await store.profiles()
  const vclusters = (await Array.fromAsync(rowPages(store, 'vcluster', ({ name }) => name))).flat()
  const workerIssuers = (await Array.fromAsync(rowPages(store, 'worker-issuer', ({ name }) => name))).flat()
  return {
    ...(await unexpiredOf(core, issuer, nowMs)),
    waiting: (await waitingRevocations(store, issuer)).count,
    others: all.filter(({ id, state }) => id !== issuer.id && state.kind !== 'retired'),
    known: await knownAuthorities(store),
    ...{ profiles, vclusters, workerIssuers },
    migrations: (await Array.fromAsync(rowPages(store, 'issuer-migration', ({ profile }) => profile))).flat(),
  }
}

export const retireIssuer = async (
  core: FlowCore & RetireCore,
  parts: ChangeParts,
  name: string,
  by: Attribution,
): Promise<Changed | Refusal> => {
  const before = await readIssuer(core, name)
  if (isRefusal(before)) return before
  const done = await onIssuer(core, name, by, async (facts) =>
    decideRetire({ ...facts, ...(await retireFacts(core, facts.issuer.value, facts.nowMs)) }),
  )
  if (isRefusal(done)) return done
  // Of a row that is not ours the name of the key is not either; the next start sets the key aside.
  if (before.value.secrets !== null && before.value.forged !== true) await parts.secrets.drop(before.value.secrets)
  return done
}
