// A new recovery key that a task asks for: the next renewal, which is due at once then, registers it in the place of the one there is.

import type { RecoveryKey } from './credentials.ts'
import { newRecoveryKey } from './key-request.ts'

export type RotationOutcome =
  { readonly kind: 'rotated'; readonly serial: string } | { readonly kind: 'failed'; readonly why: string }

export type RecoveryRotation = {
  /** Resolves when a renewal has been tried; one that is asked for already is shared. */
  ask(): Promise<RotationOutcome>
  /** The key to register; null: none was asked for. */
  wanted(): RecoveryKey | null
  /** A renewal has registered that key. */
  settle(key: RecoveryKey, outcome: RotationOutcome): void
  /** A renewal is over: where it has not registered the key, this is why. */
  tried(why: string): void
}

export const openRecoveryRotation = (): RecoveryRotation => {
  let asked: { readonly key: RecoveryKey; readonly outcome: PromiseWithResolvers<RotationOutcome> } | null = null
  const end = (outcome: RotationOutcome): void => {
    asked?.outcome.resolve(outcome)
    asked = null
  }
  return {
    ask: () => {
      asked ??= { key: newRecoveryKey(), outcome: Promise.withResolvers() }
      return asked.outcome.promise
    },
    wanted: () => asked?.key ?? null,
    settle: (key, outcome) => {
      if (key.keyPem === asked?.key.keyPem) end(outcome)
    },
    tried: (why) => end({ kind: 'failed', why }),
  }
}
