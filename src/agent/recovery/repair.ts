// `muster agent repair`: an operator's bundle, checked, and put where the agent of this machine looks for it once a second.

import { parseIsoTime } from '#platform/clock.ts'
import { errno } from '#platform/files.ts'
import type { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { DamagedCredentials, fileCredentialStore } from '#agent/state/credential-store.ts'
import { noCredentials, type Credentials } from '#agent/state/credentials.ts'
import { faultForNode, parseRepairBundle, putRepairBundle } from './repair-file.ts'

export { longestBundle } from './repair-file.ts'

export type RepairTaken =
  | { readonly kind: 'taken'; readonly bundle: RepairBundle }
  /** Says what is wrong without repeating anything of it. */
  | { readonly kind: 'unusable'; readonly why: string }
  | { readonly kind: 'not-written'; readonly errno: string | null }

/** Throws when the state folder may not be read. */
export const takeRepairBundle = (stateFolder: string, text: string, nowMs: number): RepairTaken => {
  const read = parseRepairBundle(text)
  if (read.kind === 'unusable') return { kind: 'unusable', why: `this is no repair bundle: ${read.why}` }
  const { bundle } = read
  const fault = faultForNode(bundle, stored(stateFolder).identity)
  if (fault !== null) return { kind: 'unusable', why: `this bundle is not for this machine: ${fault}` }
  // Only as far as this machine's clock is right; the plane decides.
  const expiresMs = parseIsoTime(bundle.issued.expires_at) ?? nowMs
  if (expiresMs < nowMs - clocksDifferMs) {
    return { kind: 'unusable', why: `this bundle expired at ${bundle.issued.expires_at}` }
  }
  try {
    putRepairBundle(stateFolder, text)
    return { kind: 'taken', bundle }
  } catch (error) {
    return { kind: 'not-written', errno: errno(error) }
  }
}

const clocksDifferMs = 86_400_000

/** Damaged credentials are a reason to repair, and none to refuse it. */
const stored = (stateFolder: string): Credentials => {
  try {
    return fileCredentialStore(stateFolder).load()
  } catch (error) {
    if (error instanceof DamagedCredentials) return noCredentials
    throw error
  }
}
