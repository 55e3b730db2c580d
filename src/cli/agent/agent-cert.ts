// `muster agent cert`: the outputs of this machine, from what its agent wrote down and from what is in place. Works without a
// network, and when the agent does not run.

import * as path from 'node:path'
import type { AgentFolderOptions } from './agent-look.ts'
import { agentFolder, lookedAt, noAgentStep } from './agent-look.ts'
import { readStatus, statusPath, type StatusFile } from '#agent/diagnostics/status-file.ts'
import { ago, fromNow, isRunning, judgedNowMs } from '#agent/diagnostics/status.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { renderFacts } from '#cli/kit/table.ts'
import type { OutputFileName } from '#domain/programs/output.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem } from '#pki/pem.ts'
import { isoTime, parseIsoTime } from '#platform/clock.ts'
import { readFileIfAny } from '#platform/files.ts'
import { namesIn } from '#platform/folder.ts'

type Output = NonNullable<StatusFile['outputs']>[number]
type Options = GlobalOptions & AgentFolderOptions

export const agentCertList = (cli: Cli, options: Options & ListOptions): Promise<void> => {
  const { status, outputs, nowMs } = found(cli, options)
  showList(cli, options, { items: outputs, columns: outputColumns(nowMs), body: (shown) => ({ outputs: shown }) })
  if (outputs.length === 0) printer(cli, options).note(whyNone(status))
  return Promise.resolve()
}

const outputColumns = (nowMs: number): readonly Column<Output>[] => [
  { name: 'output', cell: ({ name }) => name },
  { name: 'serial', cell: ({ serial }) => serial ?? '' },
  {
    name: 'ends',
    cell: ({ not_after: at }) => (at === null ? '' : ends(at, nowMs)),
    value: ({ not_after: at }) => at,
  },
  {
    name: 'renewed',
    cell: ({ renew_at: at }) => (at === null ? '' : fromNow(at, nowMs)),
    value: ({ renew_at: at }) => at,
  },
  { name: 'path', cell: ({ place }) => place ?? '' },
  { name: 'failure', cell: ({ failure }) => (failure === null ? '' : { text: failure, colour: 'red' }) },
]

const whyNone = ({ node_id: node, outcome }: StatusFile): string => {
  // An agent that gave up, or has no identity, has written down why, and what to do.
  if (outcome !== null && outcome.next !== null)
    return `there are no outputs here: ${outcome.text} next: ${outcome.next}`
  if (node === null) return 'this machine has no identity yet, and so no outputs; next: muster agent explain'
  return `this node has no outputs: its profile or vCluster lists none; next, on the plane: muster node show ${node}`
}

export const agentCertShow = (cli: Cli, options: Options, name: string): Promise<void> => {
  const { outputs, nowMs } = found(cli, options)
  const output = named(outputs, name)
  const inPlace = certificateIn(output)
  const files = output.place === null ? [] : filesIn(output.place)
  const { serial, not_after, renew_at, lists_until, key_type, names, reload, failure } = output
  printer(cli, options).answer({ ...output, files, certificate: inPlace }, () =>
    renderFacts([
      ['output', output.name],
      ['path', output.place ?? 'none on this host'],
      ['files', files.length === 0 ? 'none' : files],
      ['serial', serial ?? 'none in place'],
      ['ends', not_after === null ? '-' : `${not_after} (${ends(not_after, nowMs)})`],
      ['renewed', renew_at === null ? '-' : `${renew_at} (${fromNow(renew_at, nowMs)})`],
      ['lists until', lists_until ?? '-'],
      ['key', key_type],
      ['names', names.length === 0 ? 'none' : names],
      ['subject', inPlace?.uris ?? '-'],
      ['usage', inPlace?.usage ?? '-'],
      ['issuer', inPlace?.issuer ?? '-'],
      ['sha256', inPlace?.sha256 ?? '-'],
      ['reload', reload ?? 'none'],
      ['failure', failure ?? 'none'],
    ]),
  )
  return Promise.resolve()
}

export const agentCertPath = (
  cli: Cli,
  options: Options & { readonly file?: OutputFileName },
  name: string,
): Promise<void> => {
  const { place } = named(found(cli, options).outputs, name)
  if (place === null) {
    throw new Failure({
      exit: exitCodes.notReady,
      code: 'NO_PLACE',
      sentence: `This host has no place for output ${name}.`,
      next: 'Start the agent with --publish DIR, or allow it in /etc/muster/agent.toml',
    })
  }
  const at = options.file === undefined ? place : path.join(place, options.file)
  printer(cli, options).answer({ output: name, path: at }, () => [printable(at)])
  return Promise.resolve()
}

const ends = (time: string, nowMs: number): string =>
  (parseIsoTime(time) ?? nowMs) > nowMs ? fromNow(time, nowMs) : ago(time, nowMs)

type Found = { readonly status: StatusFile; readonly outputs: readonly Output[]; readonly nowMs: number }

const found = (cli: Cli, options: Options): Found => {
  const folder = agentFolder(cli, options)
  const status = lookedAt(() => readStatus(folder))
  if (status === null) {
    throw new Failure({
      exit: exitCodes.notReady,
      code: 'NO_AGENT',
      sentence: `No agent has run on ${folder}: there is no ${statusPath(folder)}.`,
      next: noAgentStep(options),
    })
  }
  return { status, outputs: status.outputs ?? [], nowMs: judgedNowMs(status, isRunning(status), cli.clock) }
}

const named = (outputs: readonly Output[], name: string): Output => {
  const output = outputs.find((one) => one.name === name)
  if (output !== undefined) return output
  throw new Failure({
    exit: exitCodes.notFound,
    code: 'NO_SUCH_OUTPUT',
    sentence: `This node has no output ${name}.`,
    next: 'See which it has: muster agent cert list',
  })
}

type ShownCertificate = {
  readonly uris: readonly string[]
  readonly usage: readonly string[]
  readonly issuer: string
  readonly not_before: string
  readonly sha256: string
}

/** As the program reads it; null: there is none, or it may not be read. */
const certificateIn = ({ place }: Output): ShownCertificate | null => {
  const pem = place === null ? null : readIfAllowed(path.join(place, 'cert.pem'))
  const [leaf] = (pem === null ? null : allFromPem('CERTIFICATE', pem)) ?? []
  const parsed = leaf === undefined ? null : parseCertificate(leaf)
  if (parsed === null || parsed.kind === 'malformed') return null
  const { uris, extendedKeyUsage: usage, issuer, notBeforeMs, sha256 } = parsed
  return { uris, usage, issuer, not_before: isoTime(notBeforeMs), sha256 }
}

const readIfAllowed = (file: string): string | null => {
  try {
    return readFileIfAny(file)
  } catch {
    return null
  }
}

const filesIn = (place: string): readonly string[] => {
  try {
    return namesIn(place).map((name) => path.join(place, name))
  } catch {
    return []
  }
}
