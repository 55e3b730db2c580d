// Drift in words: what was applied and is no longer there (R-008: never in maintenance mode).

import type { OverlayFile } from '#domain/fleet/overlay.ts'
import { differenceOf, type Difference } from '#platform/file-tree.ts'
import type { RunningService } from './service-runner.ts'
import { isStartedAs, type WantedService } from './wanted-services.ts'

/** The limit of the wire format: further lines are not sent. */
const mostLines = 16
const longestLine = 300

const words: Readonly<Record<Difference, string>> = {
  missing: 'missing',
  changed: 'changed',
  mode: 'has other permissions',
  'not a file': 'is a link or no file',
  unreadable: 'cannot be read',
}

/** `current`: the folder the files lie in; `inForce`: whether it leads where it should. */
export const driftOfFiles = (current: string, inForce: boolean, files: readonly OverlayFile[]): readonly string[] => {
  if (!inForce) return ['overlay/current: leads elsewhere']
  return files.flatMap((file) => {
    const difference = differenceOf(current, file)
    return difference === null ? [] : [`file ${file.path}: ${words[difference]}`]
  })
}

/** One that is being started is not gone yet, and one that failed was not changed by anyone: that has a condition of its own. */
export const driftOfServices = (
  wanted: readonly Pick<WantedService, 'name' | 'digest' | 'formerDigest'>[],
  running: readonly RunningService[],
): readonly string[] =>
  wanted.flatMap((service) => {
    const { name } = service
    const here = running.find((one) => one.name === name)
    if (here === undefined) return [`service ${name}: not running`]
    return isStartedAs(here.digest, service) ? [] : [`service ${name}: not the one that was started`]
  })

/** Bounded, in a steady order. */
export const driftLines = (...lines: readonly string[]): string[] =>
  lines.slice(0, mostLines).map((line) => line.slice(0, longestLine))
