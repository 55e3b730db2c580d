// `muster node enroll`: registers one node, or every line of a file.

import { hardwareApi } from '#wire/fleet/hardware-api.ts'
import { type NodeDetail, type RegisterRequest, nodeApi } from '#wire/node/node-api.ts'
import { nodeNamesApi } from '#wire/programs/names-api.ts'
import { settingsApi } from '#wire/settings/settings-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure, Failure } from '#cli/kit/failure.ts'
import { nodeName, readText } from '#cli/kit/arguments.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts, renderTable, type Cell } from '#cli/kit/table.ts'
import { parseBatch, type BatchLine } from './batch-file.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'

type EnrollOptions = GlobalOptions & {
  readonly mac?: readonly string[]
  readonly bmcSerial?: string
  readonly profile?: string
  readonly batch?: string
}

export const nodeEnroll = async (cli: Cli, options: EnrollOptions, id: string | undefined): Promise<void> => {
  if (options.batch !== undefined) {
    if (id !== undefined || options.mac !== undefined || options.bmcSerial !== undefined) {
      throw usageFailure('--batch takes nodes from its file only.', 'muster node enroll --help')
    }
    return nodeEnrollBatch(cli, options, options.batch)
  }
  if (id === undefined) throw usageFailure('Which node?', 'muster node enroll ID, or --batch FILE for many')

  const request: RegisterRequest = {
    id: nodeName(id),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.mac === undefined ? {} : { macs: [...options.mac] }),
    ...(options.bmcSerial === undefined ? {} : { bmc_serial: options.bmcSerial }),
  }
  const plane = connect(cli, options)
  const node = await plane.ask(nodeApi.register, {
    body: request,
    about: { ID: id, PROFILE: options.profile ?? 'PROFILE' },
  })
  const names = await namesOfBefore(plane, node)
  const print = printer(cli, options)
  print.answer(node, () =>
    renderFacts([
      ['node', `${node.id} ${node.membership}`],
      ['profile', node.profile],
      ['hardware', [...node.hardware.macs, node.hardware.bmc_serial ?? ''].join(' ').trim() || 'none'],
      ...(names.length === 0 ? [] : [['names', `${names.join(', ')} (from before it was revoked)`] as const]),
    ]),
  )
  print.note(`next: ${await howToJoin(plane, node)}`)
}

/** A node that is registered anew still has them, unless another node has taken them meanwhile. */
const namesOfBefore = async (plane: OperatorClient, { id }: NodeDetail): Promise<readonly string[]> => {
  const answer = await plane.tryAsk(nodeNamesApi.names, { params: { id } })
  return answer instanceof Failure ? [] : answer.names.flatMap(({ name, derived }) => (derived ? [] : [name]))
}

const howToJoin = async (plane: OperatorClient, { id, profile: name }: NodeDetail): Promise<string> => {
  const profile = await plane.tryAsk(settingsApi.profile, { params: { name } })
  const methods = profile instanceof Failure ? ['token'] : profile.join.allOf
  if (methods.includes('token')) return `muster token create --node ${id}`
  return `its machine joins by its ${methods.join(' and ')}, with what this prints: muster domain join-string`
}

type BatchResult = {
  readonly line: number
  readonly id: string
  readonly result: 'registered' | 'already there' | 'failed'
  readonly code: string | null
  readonly detail: string | null
}

const atOnce = 8
const longestFile = 32 * 1024 * 1024

const nodeEnrollBatch = async (
  cli: Cli,
  options: GlobalOptions & { readonly profile?: string },
  file: string,
): Promise<void> => {
  const lines = parseBatch(await readText(cli, file, longestFile), options.profile)
  const plane = connect(cli, options)
  const progress = progressOn(cli, lines.length)
  const results = await inParallel(lines, atOnce, async (line) => {
    const result = await register(plane, line)
    progress.step()
    return result
  })
  progress.end()

  const count = (result: BatchResult['result']) => results.filter((one) => one.result === result).length
  const print = printer(cli, options)
  print.answer({ results }, (paint) => renderTable(results.map(resultRow), paint))
  print.note(
    `${results.length} lines: ${count('registered')} registered, ${count('already there')} already there, ${count('failed')} failed`,
  )
  if (count('failed') === 0) return
  print.note(`next: correct the failed lines and run the same command again: muster node enroll --batch ${file}`)
  cli.exit.finish(exitCodes.partly)
}

const register = async (plane: OperatorClient, line: BatchLine): Promise<BatchResult> => {
  if (line.kind === 'unusable')
    return { line: line.line, id: line.id, result: 'failed', code: 'USAGE', detail: line.why }
  const about = { line: line.line, id: line.request.id }
  const answer = await plane.tryAsk(nodeApi.register, { body: line.request })
  const isFailure = answer instanceof Failure
  if (isFailure && answer.code !== 'NODE_ALREADY_ENROLLED') return failed(about, answer)
  const unnamed = await nameIt(plane, line.request.id, line.names)
  if (unnamed !== null) return failed(about, unnamed)
  const unsaid = await provision(plane, line.request.id, line.provisioning, isFailure ? null : answer)
  if (unsaid !== null) return failed(about, unsaid)
  return isFailure
    ? { ...about, result: 'already there', code: null, detail: answer.detail }
    : { ...about, result: 'registered', code: null, detail: null }
}

/** Null: it has the names. Repeated, it changes nothing. */
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
  state: (BatchLine & { kind: 'request' })['provisioning'],
  registered: NodeDetail | null,
): Promise<Failure | null> => {
  if (state === null) return null
  const node = registered ?? (await plane.tryAsk(nodeApi.show, { params: { id } }))
  if (node instanceof Failure) return node
  if (node.provisioning) return null
  const answer = await plane.tryAsk(hardwareApi.reportProvisioning, { params: { id }, body: { state } })
  return answer instanceof Failure ? answer : null
}

const failed = (about: Pick<BatchResult, 'line' | 'id'>, failure: Failure): BatchResult => {
  // A key that is not valid fails every line alike: say it once.
  if (failure.exit === exitCodes.notAllowed) throw failure
  return { ...about, result: 'failed', code: failure.code, detail: failure.detail ?? failure.message }
}

const resultRow = (result: BatchResult): Cell[] => [
  `line ${result.line}`,
  result.id,
  { text: result.result, colour: result.result === 'failed' ? 'red' : 'plain' },
  [result.code ?? '', result.detail ?? ''].join(' ').trim(),
]

/** A counter that rewrites itself on a terminal, and now and then a line where there is none. */
const progressOn = (cli: Cli, total: number): { step(): void; end(): void } => {
  const stride = Math.max(1, Math.floor(total / 10))
  let done = 0
  return {
    step() {
      done++
      if (cli.err.isTerminal) cli.err.write(`\r${done} of ${total}`)
      else if (total > 20 && done % stride === 0) cli.err.write(`${done} of ${total}\n`)
    },
    end() {
      if (cli.err.isTerminal && total > 0) cli.err.write('\r\x1b[K')
    },
  }
}
