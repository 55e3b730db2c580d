// Rows of refusal-table.ts: why something about tasks or their signers is refused.

import type { RefusalRow } from './refusal-table.ts'

// prettier-ignore
export const taskRefusals = {
  SIGNER_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'There is no such task signer on record.', next: 'List what there is: muster signer list' },
  SIGNER_ROTATING: { status: 409, fault: 'caller', retry: 'operator',
    message: 'A task signer is on its way to the nodes already.',
    next: 'See when it signs: muster signer list; let it sign at once: muster signer rotate --now; drop it: muster signer rotate --back' },
  SIGNER_NOT_IN_GRACE: { status: 409, fault: 'caller', retry: 'operator',
    message: 'There is no rotation to undo: no task signer waits, and none has its grace.',
    next: 'See what there is: muster signer list' },
  SIGNERS_FULL: { status: 409, fault: 'caller', retry: 'operator',
    message: 'As many task signers are accepted as a statement can name.',
    next: 'Wait until one has retired (muster signer list), or withdraw one: muster signer withdraw KEY --reason REASON' },
  SIGNERS_NOT_READY: { status: 503, fault: 'plane', retry: 'later',
    message: 'There is no task signer yet.',
    next: 'The leader makes it when every replica runs this release: muster store status' },
} as const satisfies Record<string, RefusalRow>
