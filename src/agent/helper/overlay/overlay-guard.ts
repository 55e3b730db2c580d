// Whether the helper starts what an overlay names: on a host that has pinned statement keys only what a statement of the plane names,
// on others what the agent asks for, as in 0.5. The statement that was taken last lies in a file of the helper's, so that services are
// started after a reboot while the plane is away.

import * as path from 'node:path'
import type { Clock } from '#platform/clock.ts'
import { errno, makeFolder, replaceFile } from '#platform/files.ts'
import type { Log } from '#platform/log.ts'
import { pathExists } from '#platform/paths.ts'
import type { Random } from '#platform/random.ts'
import { faultOfPath, readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import type { ThisNode } from '#agent/helper/tasks/judge-statement.ts'
import { openStatementFile } from '#agent/helper/tasks/statement-file.ts'
import { defaultStatementKeys, pinsStatementKeys, taskFolder, type TasksToml } from '#agent/helper/tasks/tasks-toml.ts'
import { longestOverlayStatement, type OverlayStatement } from '#wire/core/overlay-statement.ts'
import { judgeOverlay, overlayInForce } from './judge-overlay.ts'
import { refuseOverlay, type OverlayRefusal } from './overlay-verbs.ts'

/** What agent.toml says, as far as it is about this. */
type OverlayToml = { readonly node: ThisNode | null; readonly tasks: TasksToml | null }

export type OverlayGuard = {
  /** `signed`: nothing that an overlay names is started without a statement. */
  holds(toml: OverlayToml): 'signed' | 'unsigned'
  nonce(): { nonce: string }
  take(toml: OverlayToml, text: string): { vcluster_revision: number } | OverlayRefusal
  /** By which statement to start; null: this host asks for none. */
  inForce(toml: OverlayToml): OverlayStatement | OverlayRefusal | null
}

type OverlayGuardParts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly random: Random
  readonly log: Log
  readonly trust: Trust
  /** Of the helper. */
  readonly stateFolder: string
  /** Where root lays down statement keys, where agent.toml says nothing else. */
  readonly statementKeys?: string | undefined
}

const waitedForMs = 5 * 60_000
const mostNonces = 8

export const openOverlayGuard = (parts: OverlayGuardParts): OverlayGuard => {
  const { clock, random, log, trust, stateFolder, statementKeys = defaultStatementKeys } = parts
  /** In the order in which they were made. */
  const made = new Map<string, number>()

  const folderOf = ({ tasks }: OverlayToml): string =>
    tasks === null ? path.join(stateFolder, 'tasks') : taskFolder(tasks, stateFolder)
  const fileOf = (toml: OverlayToml): string => path.join(folderOf(toml), 'overlay-statement')
  const keysOf = ({ tasks }: OverlayToml): string => tasks?.statementKeys ?? statementKeys
  const isPinned = (toml: OverlayToml): boolean => pinsStatementKeys(toml, statementKeys)

  const keptIn = (toml: OverlayToml): string | null => {
    const file = fileOf(toml)
    if (!pathExists(file)) return null
    const read = readTrustedFile(file, trust, longestOverlayStatement + 1)
    if ('text' in read) return read.text.trim()
    // As where there is none: the next statement takes its place.
    log.warn({ fault: read.fault }, 'the statement of the overlay that was kept is not believed')
    return null
  }
  const pinsOf = (toml: OverlayToml) => {
    if (toml.node === null)
      return refuseOverlay('STATEMENT_MISSING', 'agent.toml has no [node]: whose statement counts here is not said')
    const read = openStatementFile(folderOf(toml), trust).now(keysOf(toml), toml.node)
    if ('fault' in read) return refuseOverlay('KEYS_UNREADABLE', read.why)
    return { node: toml.node, pinned: read.pinned, epochOfTasks: read.memory?.epoch ?? null }
  }
  const keep = (toml: OverlayToml, text: string): OverlayRefusal | null => {
    const folder = folderOf(toml)
    try {
      makeFolder(folder, 0o700)
      const fault = faultOfPath(folder, trust, { kind: 'folder', links: 'followed' })
      if (fault !== null) return refuseOverlay('NOT_KEPT', `The statement cannot be kept in ${folder}: ${fault}`)
      replaceFile(fileOf(toml), `${text}\n`, 0o600)
      return null
    } catch (error) {
      const code = errno(error)
      if (code === null) throw error
      return refuseOverlay('NOT_KEPT', `The statement cannot be kept in ${folder}: ${code}`)
    }
  }
  /** That one and all that were made before: a statement that was held back does not take the place of a later one. */
  const spend = (nonce: string): void => {
    for (const one of [...made.keys()]) {
      made.delete(one)
      if (one === nonce) return
    }
  }

  return {
    holds: (toml) => (isPinned(toml) ? 'signed' : 'unsigned'),
    nonce: () => {
      const nonce = random.bytes(18).toString('base64url')
      made.set(nonce, clock.monotonicMs())
      for (const old of [...made.keys()].slice(0, -mostNonces)) made.delete(old)
      return { nonce }
    },
    take: (toml, text) => {
      const pins = pinsOf(toml)
      if ('fault' in pins) return pins
      // One of another node, or of keys that root has replaced, says nothing about the epoch.
      const inForce = overlayInForce(keptIn(toml), pins)
      const before = 'fault' in inForce ? null : inForce.epoch
      const judged = judgeOverlay({
        text,
        node: pins.node,
        pinned: pins.pinned,
        epoch: before === null && pins.epochOfTasks === null ? null : Math.max(before ?? 0, pins.epochOfTasks ?? 0),
        nonces: [...made].filter(([, atMs]) => clock.monotonicMs() - atMs <= waitedForMs).map(([nonce]) => nonce),
      })
      if (judged.kind === 'overlay-refused') return judged
      const unkept = keep(toml, text)
      if (unkept !== null) return unkept
      const { vcluster, vcluster_revision, nonce, services, checks } = judged.value
      spend(nonce)
      const named = { services: services.map(({ name }) => name), checks: checks.map(({ name }) => name) }
      log.info({ vcluster, revision: vcluster_revision, ...named }, 'the plane has signed what the overlay names')
      return { vcluster_revision }
    },
    inForce: (toml) => {
      if (!isPinned(toml)) return null
      const pins = pinsOf(toml)
      return 'fault' in pins ? pins : overlayInForce(keptIn(toml), pins)
    },
  }
}
