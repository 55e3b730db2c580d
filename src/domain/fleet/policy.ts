// What people may do on a node, and what becomes of drift.

import { oneOf, yesOrNo, type Rule, type Rules } from '#domain/core/settings-check.ts'

export const enforcementModes = ['observe', 'enforce'] as const

export type Policy = {
  /** `observe`: drift is reported. `enforce`: it is also put right. */
  readonly enforcementMode: (typeof enforcementModes)[number]
  /** Programs that roles of the vCluster may run; platform-admins need no list. This and the next two: no effect yet. */
  readonly execWhitelist: readonly string[]
  readonly shellWhitelist: readonly string[]
  readonly regulated: boolean
}

/** Settings that nothing reads yet: what they are for comes later. They are named wherever a policy is set or shown. */
export const policyWithoutEffect = (at: string): string[] =>
  ['execWhitelist', 'shellWhitelist', 'regulated'].map((name) => `${at}.${name}`)

// What a policy may say, for vClusters and for maintenance mode alike.

const mostPrograms = 32
const longestProgram = 128

const programs: Rule = {
  takes: `a list of at most ${mostPrograms} programs, each once, of at most ${longestProgram} characters without spaces`,
  fits: (value) =>
    Array.isArray(value) &&
    value.length <= mostPrograms &&
    new Set(value).size === value.length &&
    value.every((one) => typeof one === 'string' && one.length <= longestProgram && /^[\x21-\x7e]+$/.test(one)),
}

/** `at`: the path of the policy in its document, e.g. `policy`. */
export const policyRules = (at: string): Rules => ({
  [`${at}.enforcementMode`]: oneOf(enforcementModes),
  [`${at}.execWhitelist`]: programs,
  [`${at}.shellWhitelist`]: programs,
  [`${at}.regulated`]: yesOrNo,
})
