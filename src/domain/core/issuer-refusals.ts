// Rows of refusal-table.ts: why something about outside issuers is refused.

import type { RefusalRow } from './refusal-table.ts'

// prettier-ignore
export const issuerRefusals = {
  ISSUER_UNAVAILABLE: { status: 503, fault: 'plane', retry: 'later',
    message: 'The issuer of this profile cannot sign now.',
    next: 'Try again after the time in Retry-After; an agent does so automatically. See what is wrong: muster issuer list, and muster issuer test ISSUER' },
  OUTSIDE_ISSUER_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'There is no outside issuer of that name.', next: 'List what there is: muster issuer list' },
  ISSUER_EXISTS: { status: 409, fault: 'caller', retry: 'operator',
    message: 'There is an issuer of that name already.',
    next: 'Change it: muster issuer set NAME; or take another name' },
  ISSUER_LIMIT: { status: 409, fault: 'caller', retry: 'operator',
    message: 'There are as many outside issuers as there can be.',
    next: 'Retire one that is not used: muster issuer retire NAME' },
  ISSUER_IN_USE: { status: 409, fault: 'caller', retry: 'operator',
    message: 'This issuer is in use.',
    next: 'See what uses it: muster issuer show NAME; to stop sending it requests at once: muster issuer disable NAME --reason REASON' },
  ISSUER_STATE_CONFLICT: { status: 409, fault: 'caller', retry: 'operator',
    message: 'The issuer is in a state that does not allow that.', next: 'See its state: muster issuer show NAME' },
  ISSUER_NOT_READY: { status: 409, fault: 'caller', retry: 'operator',
    message: 'This issuer cannot be used yet.', next: 'Test it, and do what the test says: muster issuer test ISSUER' },
  MIGRATION_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'This profile is in no migration.', next: 'Begin one: muster issuer migrate PROFILE --to ISSUER; see all: muster issuer migrations' },
  MIGRATION_UNDER_WAY: { status: 409, fault: 'caller', retry: 'operator',
    message: 'A profile is on its way from one issuer to another.',
    next: 'See where it stands: muster issuer migrations; finish it, or take it back with muster issuer migrate PROFILE --back' },
  MIGRATION_NOT_READY: { status: 409, fault: 'caller', retry: 'operator',
    message: 'The migration cannot take this step yet.',
    next: 'See who is in the way: muster issuer migrate PROFILE; before --finish, nodes can be left with the old issuer: --exclude NODE' },
  ISSUER_ROW_FORGED: { status: 409, fault: 'caller', retry: 'operator',
    message: 'The row of this issuer is not one that a plane of this domain wrote.',
    next: 'Find out who writes to the database; then: muster issuer retire ISSUER, and add it again' },
} as const satisfies Record<string, RefusalRow>
