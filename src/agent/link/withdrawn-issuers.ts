// Authorities below our roots that the plane has withdrawn: whoever has stolen the key of one could pose as the plane. Kept
// with the roots, and asked of every connection before anything is sent on it.

import type { AgentParts } from '#agent/core/agent-deps.ts'

/** More than these the oldest are forgotten; a plane tells at most half as many. */
const mostKept = 64

/** What was withdrawn once stays so: a replica that has not heard of it yet must not bring it back. */
export const withdrawnWith = (known: readonly string[], told: readonly string[] | undefined): readonly string[] =>
  told === undefined || told.every((id) => known.includes(id))
    ? known
    : [...new Set([...told, ...known])].slice(0, mostKept)

export const withdrawnNow = ({ keeper }: Pick<AgentParts, 'keeper'>): readonly string[] =>
  keeper.credentials().identity?.withdrawnIssuers ?? []
