// Refusals are journaled too, as far as their budget goes; beyond it they are counted, one entry a minute.

import { type Attribution, boundedText, entry } from '#domain/core/change.ts'
import type { EntryBody } from '#domain/core/journal-entry.ts'
import { actorOf, type Principal } from '#domain/core/principal.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import { refusals } from '#domain/core/refusal-table.ts'
import { commitOnce } from './commit-decision.ts'
import type { FlowCore } from './core.ts'
import type { CallerBudget } from '#plane/limits/caller-budget.ts'

/** A refusal is charged to its caller. */
export type RefusalBudgets = {
  readonly anonymousBudget: CallerBudget
  /** For callers who have proved who they are: one of them that keeps failing must not use up what anonymous callers may. */
  readonly authenticatedBudget: CallerBudget
}

type RecordingCore = Pick<FlowCore, 'store' | 'feed' | 'clock'>

export type RefusedCall = {
  readonly refusal: Refusal
  readonly principal: Principal | null
  readonly source: string
  readonly method: string
  readonly path: string | null
  readonly correlation: string
}

/** Charges the caller at once, and writes the entry if there was room for it. */
export const recordRefusal = async (core: RecordingCore, budgets: RefusalBudgets, call: RefusedCall): Promise<void> => {
  const { refusal, principal, source } = call
  if (refusals[refusal.code].fault === 'plane') return
  const { node = null, token = null, actor = 'anonymous', correlation = call.correlation } = refusal.about ?? {}
  const known = principal === null || principal.kind === 'anonymous' ? null : principal
  // A certificate that was refused still proved whose key it is.
  const budget = known !== null || /^(node|worker):/.test(actor) ? budgets.authenticatedBudget : budgets.anonymousBudget
  if (budget.charge(source) === 'over' || refusal.about?.journaled === true) return
  const by: Attribution = { actor: known === null ? actor : actorOf(known), source, correlation }
  await write(core, by, 'refused', aboutCaller(known, { node, token }), {
    code: refusal.code,
    detail: refusal.detail === null ? null : boundedText(refusal.detail),
    attempt: `${call.method} ${call.path ?? '?'}`,
    ...hardwareShown(refusal),
  })
}

type Concerned = { readonly node: string | null; readonly token: string | null }

/** `otherwise`: what the refusal itself says. */
const aboutCaller = (known: Principal | null, otherwise: Concerned) => {
  if (known !== null && known.kind === 'token') return { node: known.node, token: known.id }
  if (known !== null && known.kind === 'worker') {
    const { issuer, serial } = known.credential
    return { ...otherwise, issuer, serial }
  }
  if (known === null || known.kind !== 'node') return otherwise
  const { issuer, serial } = known.credential
  return { node: known.id, epoch: known.epoch, issuer, serial, token: otherwise.token }
}

/** A caller may report as many addresses as it likes; the journal takes a few. */
const mostMacs = 8

const hardwareShown = ({ about }: Refusal): EntryBody => {
  if (about?.hardware === undefined) return {}
  const { macs, bmcSerial } = about.hardware
  return {
    reported_macs: macs.slice(0, mostMacs),
    ...(macs.length > mostMacs ? { reported_macs_left_out: macs.length - mostMacs } : {}),
    reported_bmc_serial: bmcSerial === null ? null : boundedText(bmcSerial, 128),
  }
}

/** Once a minute: what was beyond each budget, as one entry. */
export const recordCounted = async (core: RecordingCore, budgets: RefusalBudgets): Promise<void> => {
  const by: Attribution = { actor: 'system:admission', source: null, correlation: null }
  for (const [callers, budget] of [
    ['strangers', budgets.anonymousBudget],
    ['acquaintances', budgets.authenticatedBudget],
  ] as const) {
    const counted = budget.takeCounted()
    if (counted !== null) await write(core, by, 'refusals.counted', {}, { ...counted, callers })
  }
}

const write = async (core: RecordingCore, by: Attribution, ...rest: Rest<Parameters<typeof entry>>): Promise<void> => {
  const [type, about, body] = rest
  await commitOnce(core, { reads: [], writes: [], entries: [entry(by, core.clock.nowMs(), type, about, body)] })
}

type Rest<T extends unknown[]> = T extends [unknown, unknown, ...infer R] ? R : never
