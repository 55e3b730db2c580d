// The tokens of a batch. Lines are sent in calls of bounded size; what a call has answered is in the file before the next result is
// shown. A call whose answer was lost is made good by running the command again: the plane withdraws what it had committed for it.

import { parseIsoTime } from '#platform/clock.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { durationOption } from '#cli/kit/arguments.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { localAddressIn, localWarning } from '#cli/kit/local-address.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'
import { counted } from '#domain/core/in-words.ts'
import { longestTokenTtlMs } from '#domain/core/profile.ts'
import { formatDuration } from '#wire/core/duration.ts'
import { mostBatchLines, type TokenBatchAnswer, type TokenBatchLine, tokenApi } from '#wire/enrollment/token-api.ts'
import { nodeApi } from '#wire/node/node-api.ts'
import type { BatchLine } from './batch-file.ts'
import { describe, failed, tagIt, unusable, type BatchResult, type RequestLine } from './enroll-lines.ts'
import { progressOn } from './progress.ts'
import { isWritable, openTokensFile, type IssuedToken, type TokensFile } from './tokens-file.ts'

export type BatchTools = {
  readonly cli: Cli
  readonly plane: OperatorClient
  readonly note: (text: string) => void
}

/** A body may have 64 KiB; lines with many MAC addresses fill it before the number of lines does. */
const mostCallBytes = 48 * 1024
const callsAtOnce = 4
const singlesAtOnce = 8

export const enrollWithTokens = async (
  tools: BatchTools,
  lines: readonly BatchLine[],
  file: string,
  expires: string | undefined,
): Promise<BatchResult[]> => {
  const expiresMs = expires === undefined ? null : tokenLifeIn(expires)
  const tokens = openTokensFile(tools.cli, file)
  try {
    const { cli, note } = tools
    const nowMs = cli.clock.nowMs()
    const requests = lines.filter((line) => line.kind === 'request')
    const isHeld = ({ request }: RequestLine): boolean => isGood(tokens.held.get(request.id), nowMs)
    const wanted = requests.filter((line) => !isHeld(line))
    if (tokens.held.size > 0)
      note(`${file} holds the tokens of ${requests.length - wanted.length} of ${counted(requests.length, 'line')}`)
    const issued = await issueAll(tools, wanted, tokens, expiresMs)
    const answers = new Map(wanted.map((line, at) => [line.line, issued[at]]))
    return await inParallel(lines, singlesAtOnce, async (line) => {
      if (line.kind === 'unusable') return unusable(line)
      const about = { line: line.line, id: line.request.id }
      const result = answers.get(line.line) ?? {
        ...about,
        result: 'held',
        code: null,
        detail: expiryWords(tokens, line),
      }
      if (result.result === 'failed') return result
      const unsaid = await describe(tools.plane, line, null)
      return unsaid === null ? result : failed(about, unsaid)
    })
  } finally {
    tokens.close()
  }
}

/** Checked before a line is sent: each would be refused for it. */
const tokenLifeIn = (text: string): number => {
  const ms = durationOption('--expires', text)
  if (ms > 0 && ms <= longestTokenTtlMs) return ms
  throw usageFailure(`--expires ${text}: a token is good for ${formatDuration(longestTokenTtlMs)} at most.`)
}

const isGood = (token: IssuedToken | undefined, nowMs: number): boolean =>
  token !== undefined && (parseIsoTime(token.expiresAt) ?? 0) > nowMs

const expiryWords = (tokens: TokensFile, { request }: RequestLine): string =>
  `expires ${tokens.held.get(request.id)?.expiresAt ?? ''}`

/** In the order of `lines`. What was answered is in the file, also when a later call fails. */
const issueAll = async (
  tools: BatchTools,
  lines: readonly RequestLine[],
  tokens: TokensFile,
  expiresMs: number | null,
): Promise<BatchResult[]> => {
  const { cli, plane, note } = tools
  const progress = progressOn(cli, lines.length)
  const warnOfLocal = onceOf((join: string) => {
    const local = localAddressIn(join)
    if (local !== null) note(localWarning(local))
  })
  const troubles: unknown[] = []
  const attempt = lines.length === 0 ? 0 : tokens.nextAttempt()
  const issue = async (call: readonly RequestLine[]): Promise<BatchResult[]> => {
    if (troubles.length > 0) return []
    try {
      const answered = await askBatch(plane, call, { batch: tokens.batch, attempt }, expiresMs)
      if (answered === 'older-plane') return await issueSingly(tools, call, tokens, expiresMs, () => progress.step())
      const issued = answered.flatMap(({ token, join }, at) => tokenOf(call[at], token?.expires_at, join))
      tokens.append(issued)
      if (issued[0] !== undefined) warnOfLocal(issued[0].join)
      progress.step(call.length)
      return call.map((line, at) => resultOf(line, answered[at]))
    } catch (error) {
      // The calls that are under way are waited for: what they answer belongs into the file.
      troubles.push(error)
      return []
    }
  }
  const results = await inParallel(inCalls(lines), callsAtOnce, issue)
  progress.end()
  if (troubles.length > 0) throw interrupted(troubles[0])
  return results.flat()
}

const onceOf = <T>(run: (given: T) => void): ((given: T) => void) => {
  let done = false
  return (given) => {
    if (!done) run(given)
    done = true
  }
}

/** As few calls as their bounds allow. */
const inCalls = (lines: readonly RequestLine[]): readonly (readonly RequestLine[])[] => {
  const calls: RequestLine[][] = []
  let bytes = mostCallBytes
  for (const line of lines) {
    const size = Buffer.byteLength(JSON.stringify(lineBody(line))) + 1
    const call = calls.at(-1)
    if (call === undefined || call.length === mostBatchLines || bytes + size > mostCallBytes) {
      calls.push([line])
      bytes = size
    } else {
      call.push(line)
      bytes += size
    }
  }
  return calls
}

const lineBody = ({ request, tags }: RequestLine): TokenBatchLine => ({
  ...request,
  ...(tags.length === 0 ? {} : { tags: [...tags] }),
})

type LineAnswer = TokenBatchAnswer['results'][number]

const askBatch = async (
  plane: OperatorClient,
  lines: readonly RequestLine[],
  named: { readonly batch: string; readonly attempt: number },
  expiresMs: number | null,
): Promise<readonly LineAnswer[] | 'older-plane'> => {
  const body = { ...named, lines: lines.map(lineBody), ...(expiresMs === null ? {} : { expires_ms: expiresMs }) }
  try {
    const { results } = await plane.ask(tokenApi.createBatch, { body })
    const fits = results.length === lines.length && results.every(({ id }, at) => id === lines[at]?.request.id)
    if (!fits) throw notThoseLines()
    return results
  } catch (error) {
    if (error instanceof Failure && error.code === 'NOT_FOUND') return 'older-plane'
    throw error
  }
}

const tokenOf = (
  line: RequestLine | undefined,
  expiresAt: string | undefined,
  join: string | null,
): readonly IssuedToken[] => {
  if (line === undefined || expiresAt === undefined || join === null) return []
  const token = { id: line.request.id, expiresAt, join }
  if (!isWritable(token)) throw notThoseLines()
  return [token]
}

const resultOf = (line: RequestLine, answered: LineAnswer | undefined): BatchResult => {
  const about = { line: line.line, id: line.request.id }
  const refused = answered?.refused ?? null
  if (refused === null) {
    const replaced = answered === undefined || answered.withdrawn === 0 ? '' : 'replaces a token that was lost; '
    return { ...about, result: 'issued', code: null, detail: `${replaced}expires ${answered?.token?.expires_at ?? ''}` }
  }
  const { code, detail, message } = refused
  if (code === 'ALREADY_ACTIVE') return { ...about, result: 'already there', code: null, detail: 'it is active' }
  return { ...about, result: 'failed', code, detail: detail ?? message }
}

/** A plane of 0.4 has no call for a batch: a registration and a token for each line, and no word on tokens that were lost before. */
const issueSingly = async (
  { plane }: BatchTools,
  lines: readonly RequestLine[],
  tokens: TokensFile,
  expiresMs: number | null,
  step: () => void,
): Promise<BatchResult[]> =>
  inParallel(lines, singlesAtOnce / 2, async (line) => {
    const { id } = line.request
    const about = { line: line.line, id }
    const registered = await plane.tryAsk(nodeApi.register, { body: line.request })
    if (registered instanceof Failure && registered.code !== 'NODE_ALREADY_ENROLLED') return failed(about, registered)
    const untagged = await tagIt(plane, line)
    if (untagged !== null) return failed(about, untagged)
    const body = { node: id, ...(expiresMs === null ? {} : { expires_ms: expiresMs }) }
    const made = await plane.tryAsk(tokenApi.create, { body })
    step()
    if (made instanceof Failure && made.code === 'ALREADY_ACTIVE')
      return { ...about, result: 'already there', code: null, detail: 'it is active' }
    if (made instanceof Failure) return failed(about, made)
    tokens.append(tokenOf(line, made.token.expires_at, made.join))
    const doubt =
      registered instanceof Failure ? `; an earlier token may be good still: muster token list --node ${id}` : ''
    return { ...about, result: 'issued', code: null, detail: `expires ${made.token.expires_at}${doubt}` }
  })

const notThoseLines = (): Failure =>
  new Failure({
    exit: exitCodes.fault,
    code: 'UNEXPECTED_ANSWER',
    sentence: 'The plane answered something else than tokens for these lines.',
    next: 'Compare the versions: muster version, here and on the plane',
  })

const interrupted = (trouble: unknown): unknown =>
  trouble instanceof Failure && trouble.exit !== exitCodes.notAllowed && trouble.code !== 'FILE_NOT_WRITTEN'
    ? new Failure({
        exit: trouble.exit,
        code: trouble.code,
        sentence: trouble.message,
        detail: trouble.detail,
        retryAfterMs: trouble.retryAfterMs,
        next: `${stepBefore(trouble)}un the same command again: it keeps the tokens in the file, withdraws those whose answer was lost, and makes the rest`,
      })
    : trouble

/** What a plane has refused it refuses again, until that is put right. */
const stepBefore = ({ exit, next }: Failure): string =>
  exit === exitCodes.refused && next !== null ? `${next}; then r` : 'R'
