// The lines of a batch, registered one by one, and what else a line says of its machine.

import { hardwareApi } from '#wire/fleet/hardware-api.ts'
import { type NodeDetail, nodeApi } from '#wire/node/node-api.ts'
import { nodeNamesApi } from '#wire/programs/names-api.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'
import type { BatchLine } from './batch-file.ts'
import { progressOn } from './progress.ts'

export type BatchResult = {
  readonly line: number
  readonly id: string
  /** `issued` and `held` with --tokens only: the line has got its token now, or the file had it before. */
  readonly result: 'registered' | 'issued' | 'held' | 'already there' | 'failed'
  readonly code: string | null
  readonly detail: string | null
}

export type RequestLine = Extract<BatchLine, { kind: 'request' }>

const atOnce = 8

export const registerAll = async (
  cli: Cli,
  plane: OperatorClient,
  lines: readonly BatchLine[],
): Promise<BatchResult[]> => {
  const progress = progressOn(cli, lines.length)
  const done = await inParallel(lines, atOnce, async (line) => {
    const result = line.kind === 'unusable' ? unusable(line) : await register(plane, line)
    progress.step()
    return result
  })
  progress.end()
  return done
}

export const unusable = ({ line, id, code, why }: Extract<BatchLine, { kind: 'unusable' }>): BatchResult => ({
  line,
  id,
  result: 'failed',
  code,
  detail: why,
})

const register = async (plane: OperatorClient, line: RequestLine): Promise<BatchResult> => {
  const about = { line: line.line, id: line.request.id }
  const answer = await plane.tryAsk(nodeApi.register, { body: line.request })
  const isFailure = answer instanceof Failure
  if (isFailure && answer.code !== 'NODE_ALREADY_ENROLLED') return failed(about, answer)
  const untagged = await tagIt(plane, line)
  const unsaid = untagged ?? (await describe(plane, line, isFailure ? null : answer))
  if (unsaid !== null) return failed(about, unsaid)
  return isFailure
    ? { ...about, result: 'already there', code: null, detail: answer.detail }
    : { ...about, result: 'registered', code: null, detail: null }
}

/** Null: it has the tags. Repeated, it changes nothing. */
export const tagIt = async (plane: OperatorClient, { request, tags }: RequestLine): Promise<Failure | null> => {
  if (tags.length === 0) return null
  const answer = await plane.tryAsk(hardwareApi.tag, { params: { id: request.id }, body: { add: [...tags] } })
  return answer instanceof Failure ? answer : null
}

/** Null: the plane knows what the line says of the machine besides its registration. Repeated, it changes nothing. */
export const describe = async (
  plane: OperatorClient,
  { request: { id }, names, provisioning }: RequestLine,
  registered: NodeDetail | null,
): Promise<Failure | null> => (await nameIt(plane, id, names)) ?? (await provision(plane, id, provisioning, registered))

const nameIt = async (plane: OperatorClient, id: string, names: readonly string[]): Promise<Failure | null> => {
  if (names.length === 0) return null
  const answer = await plane.tryAsk(nodeNamesApi.addNames, { params: { id }, body: { names: [...names] } })
  return answer instanceof Failure ? answer : null
}

/**
 * Null: it is said how far the machine is. Only where nothing was before: a file that is enrolled again must not take back what an
 * adapter has said since. `registered`: just now; null: it was there already.
 */
const provision = async (
  plane: OperatorClient,
  id: string,
  state: RequestLine['provisioning'],
  registered: NodeDetail | null,
): Promise<Failure | null> => {
  if (state === null) return null
  const node = registered ?? (await plane.tryAsk(nodeApi.show, { params: { id } }))
  if (node instanceof Failure) return node
  if (node.provisioning) return null
  const answer = await plane.tryAsk(hardwareApi.reportProvisioning, { params: { id }, body: { state } })
  return answer instanceof Failure ? answer : null
}

export const failed = (about: Pick<BatchResult, 'line' | 'id'>, failure: Failure): BatchResult => {
  // A key that is not valid fails every line alike: say it once.
  if (failure.exit === exitCodes.notAllowed) throw failure
  return { ...about, result: 'failed', code: failure.code, detail: failure.detail ?? failure.message }
}
