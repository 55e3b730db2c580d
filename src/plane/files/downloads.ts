// What downloads may cost: so many at a time, so many for one caller, and so many bytes a second, of all kinds of files together. A
// caller that finds no place is given a time to come back.

import { actorOf, type NodePrincipal, type TokenPrincipal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { sendBytes, type SendOutcome } from '#platform/send-bytes.ts'
import { openSourceShares, sourceOf } from '#platform/source-shares.ts'
import type { Timers } from '#platform/timers.ts'
import type { FileSending } from '#plane/http/route.ts'
import { openBandwidth } from '#plane/limits/bandwidth.ts'
import { openRetrySpacing } from '#plane/limits/retry-times.ts'
import type { FolderFile } from './served-folder.ts'

export type Downloads = {
  /** Takes a place, which is given back when all is sent or the caller is gone. */
  begin(file: FolderFile, caller: DownloadCaller, kind: DownloadKind): Promise<FileSending | Refusal>
}

/** A download that goes on where it ended is another. */
export type DownloadKind = {
  readonly name: string
  /** With one token, as long as it lives; with a certificate, in an hour. */
  readonly perCaller: number
  /** Of several planes, each allows its share, and this at least: a balancer may send a caller to the same one each time. */
  readonly perCallerAtLeast: number
}

export const agentDownload: DownloadKind = { name: 'agent', perCaller: 10, perCallerAtLeast: 4 }
/** A node has at most 4 tasks under way. */
export const taskFileDownload: DownloadKind = { name: 'task file', perCaller: 200, perCallerAtLeast: 100 }

export type DownloadCaller = NodePrincipal | TokenPrincipal

export type DownloadParts = {
  /** Over how many planes a caller may spread what it asks for. */
  readonly replicas: () => number
  /** To all callers together. */
  readonly bytesPerSecond: number
  readonly onEnd: (outcome: SendOutcome, kind: DownloadKind) => void
}

export const downloadLimits = {
  atOnce: 20,
  /** Of these, all nodes together: stolen certificates must not keep out machines that join with a token. */
  atOnceToNodes: 10,
  /** One that was cut off may not have been noticed yet when its caller comes back. */
  atOncePerCaller: 2,
} as const

const hourMs = 3_600_000
const shortestWaitMs = 1000

type DownloadCore = { readonly clock: Clock; readonly timers: Timers; readonly log: Log }

export const openDownloads = (core: DownloadCore, parts: DownloadParts): Downloads => {
  const { clock, timers, log } = core
  const spacing = openRetrySpacing(clock)
  const bandwidth = openBandwidth(clock, timers, parts.bytesPerSecond)
  const bySource = openSourceShares(null)
  const byCaller = openSourceShares(downloadLimits.atOncePerCaller)
  const spent = openSpent(clock)
  const under = { node: 0, token: 0 }

  const enter = (caller: DownloadCaller): (() => void) | null => {
    const { kind } = caller
    const [name, source] = [actorOf(caller), placeOf(caller)]
    const free = downloadLimits.atOnce - under.node - under.token
    if (free <= 0 || !byCaller.fits(name, free) || !bySource.fits(source, free)) return null
    if (kind === 'node' && under.node >= downloadLimits.atOnceToNodes) return null
    under[kind] += 1
    bySource.add(source)
    byCaller.add(name)
    return () => {
      under[kind] -= 1
      bySource.remove(source)
      byCaller.remove(name)
    }
  }
  const isUnchanged = ({ name, content }: FolderFile): Promise<boolean> =>
    content.isUnchanged().catch((error: unknown) => {
      log.error({ err: error, file: name }, 'a file could not be read')
      return false
    })
  const busy = (bytes: number): Refusal => {
    const apartMs = (bytes * 1000) / parts.bytesPerSecond
    const detail = 'as many files as the plane sends at a time are under way'
    return { ...refuse('BUSY', detail), retryAfterMs: spacing.nextMs(shortestWaitMs + apartMs, apartMs) }
  }
  const mostOf = ({ perCaller, perCallerAtLeast }: DownloadKind): number =>
    Math.max(perCallerAtLeast, Math.ceil(perCaller / parts.replicas()))

  return {
    async begin(file, caller, kind) {
      const name = actorOf(caller)
      const refused = spent.refusal(kind, name, mostOf(kind))
      if (refused !== null) return refused
      const { content } = file
      const leave = enter(caller)
      if (leave === null) return busy(content.bytes)
      const letGo = content.hold()
      if (letGo === null || !(await isUnchanged(file))) {
        letGo?.()
        leave()
        return { ...refuse('UNAVAILABLE', 'the file is being replaced'), retryAfterMs: shortestWaitMs }
      }
      spent.count(kind, name, caller.kind === 'token' ? caller.expiresAtMs : clock.nowMs() + hourMs)
      return {
        kind: 'sending',
        async send(response, from, end) {
          const source = { read: content.read, pace: (bytes: number) => bandwidth.take(bytes) }
          const outcome = await sendBytes(core, response, source, from, end).catch((error: unknown) => {
            log.error({ err: error, file: file.name }, 'a file could not be read')
            return 'failed' as const
          })
          letGo()
          leave()
          parts.onEnd(outcome, kind)
          log.info(
            { to: name, from: caller.source, file: file.name, bytes: end - from, outcome },
            `${kind.name} download ended`,
          )
          return outcome
        },
      }
    },
  }
}

/** Nodes that have proven who they are do not share the places of their address: a fleet behind one is not limited by it. */
const placeOf = (caller: DownloadCaller): string => (caller.kind === 'node' ? actorOf(caller) : sourceOf(caller.source))

/** How often each caller has begun a download. In memory: a restart counts anew, and a token does not live long. */
const openSpent = (clock: Clock) => {
  const counts = new Map<string, { count: number; readonly untilMs: number }>()
  let prunedMs = clock.nowMs()
  const prune = (nowMs: number): void => {
    if (Math.abs(nowMs - prunedMs) < 60_000) return
    prunedMs = nowMs
    for (const [name, { untilMs }] of counts) if (nowMs >= untilMs) counts.delete(name)
  }
  return {
    refusal(kind: DownloadKind, name: string, most: number): Refusal | null {
      const nowMs = clock.nowMs()
      const known = counts.get(`${kind.name} ${name}`)
      if (known === undefined || nowMs >= known.untilMs || known.count < most) return null
      const refusal = refuse('DOWNLOADS_SPENT', `it may be fetched ${most} times here`)
      return name.startsWith('token:') ? refusal : { ...refusal, retryAfterMs: known.untilMs - nowMs }
    },
    count(kind: DownloadKind, name: string, untilMs: number): void {
      const nowMs = clock.nowMs()
      prune(nowMs)
      const key = `${kind.name} ${name}`
      const known = counts.get(key)
      if (known === undefined || nowMs >= known.untilMs) counts.set(key, { count: 1, untilMs })
      else known.count += 1
    },
  }
}
