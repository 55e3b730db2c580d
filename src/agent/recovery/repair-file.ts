// The repair bundle an operator has carried to this machine: put into the state folder by `muster agent repair`, used
// for one recovery, and deleted.

import * as path from 'node:path'
import { ownerForFolder, makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { RepairBundle, repairTokenShape } from '#wire/recovery/recovery-api.ts'
import { faultOfRecoveryTrust } from '#agent/state/certificate-answer.ts'
import type { Identity } from '#agent/state/credentials.ts'

const repairFile = (stateFolder: string): string => path.join(stateFolder, 'repair.json')

export const longestBundle = 512 * 1024

export type ReadBundle =
  { readonly kind: 'bundle'; readonly bundle: RepairBundle } | { readonly kind: 'unusable'; readonly why: string }

/** What is wrong is said without repeating anything of it: there is a secret inside. */
export const parseRepairBundle = (text: string): ReadBundle => {
  const value = jsonOrNull(text)
  if (!matchesSchema(RepairBundle, value)) return unusable('it is not a repair bundle, or not a whole one')
  if (!repairTokenShape.test(value.recovery_token)) return unusable('its token is malformed')
  const secure = (url: string): boolean => URL.canParse(url) && new URL(url).protocol === 'https:'
  if (!value.recovery_urls.every(secure)) return unusable('an address in it is not https')
  const fault = faultOfRecoveryTrust({ roots: value.recovery_roots, statement_keys: value.statement_keys })
  if (fault !== null) return unusable(fault)
  if (parseIsoTime(value.issued.expires_at) === null) return unusable('it does not say until when it is valid')
  return { kind: 'bundle', bundle: value }
}

/** A bundle for another machine would make this one give up who it is. */
export const faultForNode = (
  bundle: RepairBundle,
  identity: Pick<Identity, 'domain' | 'nodeId'> | null,
): string | null => {
  if (identity === null) return null
  if (bundle.domain !== identity.domain) return `it is of domain ${bundle.domain}, and this node of ${identity.domain}`
  if (bundle.node_id !== identity.nodeId) return `it is for node ${bundle.node_id}, and this is ${identity.nodeId}`
  return null
}

export type RepairBundles = {
  /** Null when there is none, or one that is of no use here. */
  find(identity: Identity | null): RepairBundle | null
  /** It has worked, or was refused: it is not found again, even where the disk does not let go of it. */
  spent(bundle: RepairBundle): void
  /** Null, or why it could not be deleted. */
  drop(): string | null
}

export const openRepairBundles = (stateFolder: string): RepairBundles => {
  const spent = new Set<string>()
  return {
    find: (identity) => {
      const bundle = bundleIn(stateFolder)
      return bundle === null || spent.has(bundle.issued.id) || faultForNode(bundle, identity) !== null ? null : bundle
    },
    spent: (bundle) => void spent.add(bundle.issued.id),
    drop: () => dropRepairBundle(stateFolder),
  }
}

const bundleIn = (stateFolder: string): RepairBundle | null => {
  try {
    const read = parseRepairBundle(readFileIfAny(repairFile(stateFolder)) ?? '')
    return read.kind === 'bundle' ? read.bundle : null
  } catch {
    return null
  }
}

/** Throws when it cannot be written. */
export const putRepairBundle = (stateFolder: string, text: string): void => {
  makeFolder(stateFolder, 0o700)
  replaceFile(repairFile(stateFolder), text, 0o600, ownerForFolder(stateFolder))
}

const dropRepairBundle = (stateFolder: string): string | null => {
  try {
    if (readFileIfAny(repairFile(stateFolder)) !== null) removeFile(repairFile(stateFolder))
    return null
  } catch (error) {
    return error instanceof Error ? error.message : 'unknown'
  }
}

const unusable = (why: string): ReadBundle => ({ kind: 'unusable', why })

const jsonOrNull = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
