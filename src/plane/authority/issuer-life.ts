// How long certificate authorities live, and when each has to be replaced: pure arithmetic on times.

const day = 24 * 3600 * 1000
const week = 7 * day

export type Life = { readonly notBeforeMs: number; readonly notAfterMs: number }

/** Time enough to replace something before it is needed: `maintain` runs every few seconds. */
const marginOf = (lifetimeMs: number): number => Math.min(day, lifetimeMs / 20)

/** The longest lifetime below an authority of this lifetime, replacements of that authority included. */
export const fitsBelow = (lifetimeMs: number): number => Math.max(0, lifetimeMs - 2 * marginOf(lifetimeMs))

export const halfLifeMs = ({ notBeforeMs, notAfterMs }: Life): number => (notBeforeMs + notAfterMs) / 2

/**
 * While the longest certificate it signs still fits, and at half life at the latest. Where that certificate would not
 * even fit into a fresh authority, replacing sooner gains nothing; where this one ends together with the one above it,
 * replacing it gains nothing at all. One from the future is of no use: the clock was set back.
 */
export const isReplacementDue = (life: Life, above: Life, longestBelowMs: number, nowMs: number): boolean => {
  if (nowMs < life.notBeforeMs) return true
  if (life.notAfterMs >= above.notAfterMs) return false
  const lifetimeMs = life.notAfterMs - life.notBeforeMs
  if (nowMs >= halfLifeMs(life)) return true
  return longestBelowMs <= fitsBelow(lifetimeMs) && nowMs >= life.notAfterMs - longestBelowMs - marginOf(lifetimeMs)
}

/** A memory issuer lives as long as the longest leaf it may sign, and a week more (ruling 1). */
export const memoryIssuerLifetimeMs = (longestLeafMs: number): number => longestLeafMs + week

export type CapacityFacts = {
  readonly nowMs: number
  readonly intermediateLifetimeMs: number
  readonly root: Life & { readonly online: boolean }
  /** What signs leaves now, or null. */
  readonly issuing: Life | null
  /** What signs memory issuers, where there are any. */
  readonly domainCa: Life | null
}

/** The longest leaf that can be had now, if need be from an issuer made for it. */
export const longestLeaf = (facts: CapacityFacts): number => {
  const { nowMs, root, issuing, domainCa } = facts
  const remaining = (life: Life | null): number => (life === null ? 0 : Math.max(0, life.notAfterMs - nowMs))
  const fresh = fitsBelow(Math.min(facts.intermediateLifetimeMs, remaining(root)))
  if (domainCa === null) return root.online ? fresh : remaining(issuing)
  const above = root.online ? fresh : remaining(domainCa)
  return above - Math.min(week, above / 4)
}
