// The name of an issuer, as profiles, outputs and worker issuers have it.

import { builtIn } from './profile.ts'
import type { Rule } from './settings-check.ts'

export const issuerNameShape = /^[a-z0-9][a-z0-9-]{0,31}$/

export const issuerNameRule: Rule = {
  takes: `${builtIn}, or the name of an outside issuer`,
  fits: (value) => typeof value === 'string' && issuerNameShape.test(value),
}
