// The names in a node's certificate: a profile's templates, filled in from the registry and never from a request.

import type { DomainSettings } from './domain-settings.ts'
import type { NodeId } from './node.ts'
import type { Profile } from './profile.ts'
import { refuse, type Refusal } from './refusal.ts'

export type Subject = { readonly cn: string; readonly o: string; readonly ou: string }

/** X.520's upper bound for each of CN, O and OU. */
const longestName = 64

export const subjectOf = (
  node: NodeId,
  profile: Profile,
  domain: DomainSettings,
): { readonly kind: 'subject'; readonly subject: Subject } | Refusal => {
  const fill = (template: string): string => template.replaceAll('{id}', node).replaceAll('{domain}', domain.name)
  const { cn, o, ou } = profile.certificate.subject
  const subject = { cn: fill(cn), o: fill(o), ou: fill(ou) }
  const tooLong = Object.values(subject).find((name) => name.length > longestName)
  return tooLong === undefined
    ? { kind: 'subject', subject }
    : refuse('PROFILE_INVALID', `the name ${tooLong} is longer than the ${longestName} characters a certificate takes`)
}
