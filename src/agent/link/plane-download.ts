// A file of the plane, fetched with our certificate into a file of the agent.

import { errno } from '#platform/files.ts'
import { downloadOn } from '#platform/http-download.ts'
import { knownCodesHeaders } from '#wire/core/newer-codes.ts'
import { pathOf, type ParamsOf } from '#wire/core/endpoint.ts'
import type { taskFileApi } from '#wire/tasks/task-file-api.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { connectAs } from './connect-plane.ts'
import { evidenceHeaders } from './evidence.ts'
import { addresses, under, type CallingAgent } from './plane-client.ts'
import { failureFrom, refusalFrom, type PlaneFailure } from './plane-failure.ts'

/** A call of a node in its own name that is answered with a file. */
type FileCall = (typeof taskFileApi)['download']

export type PlaneFile<E extends FileCall> = {
  readonly endpoint: E
  readonly params: Omit<ParamsOf<E>, 'id'>
  readonly etag: string
  /** In bytes, beside those of it that are there already. */
  readonly most: number
  readonly file: string
}

export type Downloaded = { readonly kind: 'downloaded' } | { readonly kind: 'too-large'; readonly bytes: number }

const silentMs = 30_000

/** Asks one address after the other until one of them answers. Throws what the disk throws. */
export const downloadFromPlane = async <E extends FileCall>(
  agent: CallingAgent,
  identity: Identity,
  call: PlaneFile<E>,
): Promise<Downloaded | PlaneFailure> => {
  let outcome: Downloaded | PlaneFailure = { kind: 'stopped' }
  for (const base of addresses(identity.endpoints.runtime, identity.origin.url)) {
    outcome = await downloadAt(agent, identity, base, call)
    if (outcome.kind !== 'unreachable' && outcome.kind !== 'untrusted') break
  }
  return outcome
}

const downloadAt = async <E extends FileCall>(
  agent: CallingAgent,
  identity: Identity,
  base: string,
  { endpoint, params, etag, most, file }: PlaneFile<E>,
): Promise<Downloaded | PlaneFailure> => {
  const url = new URL(under(base, pathOf(endpoint, { ...params, id: identity.nodeId })))
  const { notAfterMs } = identity.current
  const connected = await connectAs(agent, identity, url, agent.signal)
  if (connected.kind !== 'connected') return connected
  const headers = { ...evidenceHeaders(agent, identity), ...knownCodesHeaders }
  const request = { path: url.pathname, authority: url.host, headers, etag, most, silentMs }
  try {
    const answer = await downloadOn(agent.timers, connected.socket, request, file, agent.signal)
    if (answer.kind !== 'refused') {
      agent.record.count({ kind: 'exchanged' })
      return answer
    }
    const certificate = { notAfterMs, nowMs: agent.clock.nowMs() }
    return refusalFrom(answer.status, answer.retryAfter, answer.body, { at: 'runtime', certificate })
  } catch (error) {
    if (isOfDisk(error)) throw error
    return failureFrom(error, url.origin, agent.clock.nowMs(), { for: 'runtime', address: connected.address })
  }
}

const diskCodes: ReadonlySet<string> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EACCES',
  'EIO',
  'ELOOP',
  'EFBIG',
  'ENOENT',
])

const isOfDisk = (error: unknown): boolean => diskCodes.has(errno(error) ?? '')
