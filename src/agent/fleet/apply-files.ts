// The files of an overlay, in force by one rename: STATE/overlay/DIGEST holds a set of them, and STATE/overlay/current leads
// to the one that applies. A crash at any point, and a full disk, leave the old set or the new one, whole.

import * as path from 'node:path'
import type { OverlayFile } from '#domain/fleet/overlay.ts'
import { kindOfPlace, linkTarget, switchLink, writeTree } from '#platform/file-tree.ts'
import { errno, letPass, makeFolder } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'
import { removeFolder } from '#platform/paths.ts'
import { plainDigest, type Digest } from './secret-digest.ts'
import { digestOfFiles } from './wanted-services.ts'

/** Every place at which a crash could leave something half done. */
export const overlaySteps = ['file written', 'staged', 'link made', 'switched', 'old removed'] as const
export type OverlayStep = (typeof overlaySteps)[number]

export type AppliedFiles = { readonly kind: 'applied' } | { readonly kind: 'not-applied'; readonly detail: string }

export type OverlayFiles = {
  /** The value of `{overlay}`; the same in every revision. */
  readonly current: string
  /** Whether these were the last to be put in force. Not whether they are still what they were: drift.ts. */
  areInForce(files: readonly OverlayFile[]): boolean
  /** Also when they are already in force: they are all written anew. */
  apply(files: readonly OverlayFile[]): AppliedFiles
  /**
   * Lets services of other users reach the files, each of which has the mode that its vCluster gives it. They may go through the
   * state folder then and cannot list it; whatever else is in it can be read by the agent's user alone. Throws what the system says.
   */
  letOthersIn(): void
}

export const overlayFolder = (stateFolder: string): string => path.join(stateFolder, 'overlay')

const ours = /^([0-9a-f]{16})(-2)?$/

export const openOverlayFiles = (
  stateFolder: string,
  secretDigest: Digest,
  reached: (step: OverlayStep) => void = () => {},
): OverlayFiles => {
  const folder = overlayFolder(stateFolder)
  const current = path.join(folder, 'current')

  /** As far as it can be: what a service has locked itself into must not keep the next revision out. */
  const removeOthers = (kept: string | null): void => {
    for (const name of namesIn(folder)) {
      if (!ours.test(name) || name === kept) continue
      try {
        removeFolder(path.join(folder, name))
      } catch {
        // Tried again with the next revision.
      }
    }
  }
  const replace = (files: readonly OverlayFile[]): void => {
    if (kindOfPlace(folder) === 'other') throw new Error(`${folder} is not a folder`)
    makeFolder(folder, 0o755)
    const before = linkTarget(current)
    // What a crash or a full disk has left.
    removeOthers(before)
    const digest = digestOfFiles(files, secretDigest)
    const next = before === digest ? `${digest}-2` : digest
    try {
      writeTree(path.join(folder, next), files, () => reached('file written'))
      reached('staged')
      switchLink(current, next, () => reached('link made'))
    } catch (error) {
      removeOthers(before)
      throw error
    }
    reached('switched')
    removeOthers(next)
    reached('old removed')
  }

  return {
    current,
    letOthersIn: () => {
      if (kindOfPlace(folder) !== 'folder') return
      letPass(stateFolder)
      letPass(folder)
    },
    areInForce: (files) => {
      const [, name] = ours.exec(targetIfAny(current) ?? '') ?? []
      // An agent of 0.3 has named it so: they are not written anew for that.
      return name === digestOfFiles(files, secretDigest) || name === digestOfFiles(files, plainDigest)
    },
    apply: (files) => {
      const fault = faultOfPaths(files)
      if (fault !== null) return { kind: 'not-applied', detail: fault }
      try {
        replace(files)
        return { kind: 'applied' }
      } catch (error) {
        if (errno(error) === null && !(error instanceof Error)) throw error
        return { kind: 'not-applied', detail: `the files could not be written: ${messageOf(error)}` }
      }
    },
  }
}

/** A link that leads out of the folder is not one of ours. */
const targetIfAny = (link: string): string | null => {
  try {
    return linkTarget(link)
  } catch {
    return null
  }
}

/** Checked here again, where they are used: a path is the only way out of the folder. */
const faultOfPaths = (files: readonly OverlayFile[]): string | null => {
  const seen = new Set<string>()
  for (const { path: place } of files) {
    const segments = place.split('/')
    if (!segments.every((segment) => /^[A-Za-z0-9._-]+$/.test(segment) && segment !== '.' && segment !== '..'))
      return `the path ${JSON.stringify(place)} is not taken`
    if (seen.has(place)) return `the path ${place} is there twice`
    seen.add(place)
  }
  return null
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
