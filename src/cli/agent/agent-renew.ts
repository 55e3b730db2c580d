// Asks the agent on this machine to act now: to renew, or to use a repair bundle.

import { isRunning, judgedNowMs, fromNow } from '#agent/diagnostics/status.ts'
import { readStatusFile, statusPath, type StatusFile, type StatusTrouble } from '#agent/diagnostics/status-file.ts'
import type { FailureClass } from '#domain/core/node.ts'
import { sendNudge } from '#platform/signals.ts'
import { isOfWriter } from '#platform/process-mark.ts'
import { sleep } from '#platform/timers.ts'
import { agentFolder, lookedAt, noAgentStep, notPermitted, type AgentFolderOptions } from './agent-look.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes, type ExitCode } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { printable } from '#cli/kit/printable.ts'
import { longestBundle, takeRepairBundle } from '#agent/recovery/repair.ts'
import type { RepairBundle } from '#wire/recovery/recovery-api.ts'
import { readText } from '#cli/kit/arguments.ts'

type RenewOptions = GlobalOptions & AgentFolderOptions & { readonly now?: boolean }

const waitMs = 60_000
const lookEveryMs = 250

/** With `--now` it nudges the agent that runs here, and waits for what comes of it. */
export const agentRenew = async (cli: Cli, options: RenewOptions): Promise<void> => {
  const folder = agentFolder(cli, options)
  const before = runningAgent(folder, options)
  if (options.now !== true) return sayWhen(cli, options, before)
  nudge(before, statusPath(folder))
  const after = await outcomeOf(cli, folder, before)
  const serial = after.certificate?.serial ?? null
  printer(cli, options).answer({ renewed: true, serial, not_after: after.certificate?.not_after ?? null }, () => [
    `renewed: certificate ${printable(serial ?? '')}, valid until ${printable(after.certificate?.not_after ?? '')}`,
  ])
}

const sayWhen = (cli: Cli, options: RenewOptions, status: StatusFile): void => {
  const { certificate } = status
  const print = printer(cli, options)
  const nowMs = judgedNowMs(status, true, cli.clock)
  print.answer({ renewed: false, renew_at: certificate?.renew_at ?? null }, () => [
    certificate === null
      ? 'The agent has no certificate yet.'
      : printable(
          `Certificate ${certificate.serial} is renewed ${fromNow(certificate.renew_at, nowMs)}, at ${certificate.renew_at}.`,
        ),
  ])
  print.note('to do it now: muster agent renew --now')
}

const runningAgent = (folder: string, options: AgentFolderOptions): StatusFile => {
  const status = lookedAt(() => readStatusFile(folder))
  if (status !== null && isRunning(status)) return status
  throw new Failure({
    exit: exitCodes.notReady,
    code: 'AGENT_NOT_RUNNING',
    sentence: `No agent runs on ${folder}.`,
    next: noAgentStep(options),
  })
}

const nudge = (status: StatusFile, file: string): void => {
  if (status.nudges !== true) {
    throw new Failure({
      exit: exitCodes.notReady,
      code: 'AGENT_TAKES_NO_NUDGE',
      sentence: `The agent (process ${status.pid}) cannot be asked to renew now.`,
      next: 'It renews automatically; to renew now, restart it: systemctl restart muster-agent',
    })
  }
  // For root: a user who can write that file could otherwise have any process ended.
  if (!isOfWriter(status.pid, file)) {
    throw new Failure({
      exit: exitCodes.refused,
      code: 'NOT_THE_AGENT',
      sentence: `Process ${status.pid}, which ${file} names, belongs to another user than that file.`,
      next: `See what it is: ps -fp ${status.pid}; then restart the agent: systemctl restart muster-agent`,
    })
  }
  if (sendNudge(status.pid) === 'not-allowed') throw notPermitted(`process ${status.pid} belongs to another user`)
}

/** As the agent wrote it once it has another certificate; anything else is a failure. */
const outcomeOf = async (cli: Cli, folder: string, before: StatusFile): Promise<StatusFile> => {
  const untilMs = cli.clock.monotonicMs() + waitMs
  while (cli.clock.monotonicMs() < untilMs) {
    await sleep(cli.timers, lookEveryMs)
    const status = lookedAt(() => readStatusFile(folder))
    // Torn for a moment, on a full disk.
    if (status === null) continue
    if (status.certificate !== null && status.certificate.serial !== before.certificate?.serial) return status
    const failed = newTrouble(before, status)
    if (failed !== null) throw failureOf(failed)
    if (!isRunning(status)) throw ended(status)
  }
  throw new Failure({
    exit: exitCodes.tryLater,
    code: 'NO_OUTCOME',
    sentence: 'The agent was asked to renew, and has said nothing of it within a minute.',
    next: 'See what it is doing: muster agent explain',
  })
}

/** What was met since: new, or met once more. */
const newTrouble = (before: StatusFile, after: StatusFile): StatusTrouble | null =>
  after.troubles.find((what) => {
    if (what.place !== 'renewal' && what.place !== 'recovery') return false
    const same = before.troubles.find(({ place }) => place === what.place)
    return same?.since !== what.since || same.attempts !== what.attempts
  }) ?? null

const exitOfClass: Readonly<Record<FailureClass, ExitCode>> = {
  endpoint_unreachable: exitCodes.unavailable,
  endpoint_profile_drift: exitCodes.unavailable,
  server_tls_untrusted: exitCodes.serverUntrusted,
  identity_revoked_or_fenced: exitCodes.agentRefused,
  recovery_enrollment_blocked: exitCodes.agentRefused,
  cert_expired: exitCodes.notReady,
  disk_full: exitCodes.tryLater,
  clock_skew: exitCodes.tryLater,
  credentials_damaged: exitCodes.notReady,
}

const failureOf = (what: StatusTrouble): Failure =>
  new Failure({
    exit: what.class === null || what.class === undefined ? exitCodes.refused : exitOfClass[what.class],
    code: what.code,
    sentence: what.text,
    detail: what.next_try_at === null ? null : `the agent tries again at ${what.next_try_at}`,
    next: what.next,
  })

const ended = ({ outcome }: StatusFile): Failure =>
  new Failure({
    exit: exitCodes.notReady,
    code: outcome?.code ?? 'AGENT_NOT_RUNNING',
    sentence: outcome?.text ?? 'The agent has ended.',
    next: outcome?.next ?? 'See why: muster agent explain',
  })

type RepairOptions = GlobalOptions & AgentFolderOptions & { readonly bundleFile?: string }

export const agentRepair = async (cli: Cli, options: RepairOptions): Promise<void> => {
  if (options.bundleFile === undefined)
    throw usageFailure('No bundle is named.', 'muster agent repair --bundle-file FILE, or - for standard input')
  const folder = agentFolder(cli, options)
  const text = await readText(cli, options.bundleFile, longestBundle)
  const { node_id, domain, issued } = taken(folder, text, cli.clock.nowMs())
  const running = lookedAt(() => {
    const status = readStatusFile(folder)
    return status !== null && isRunning(status)
  })
  const print = printer(cli, options)
  print.answer({ node_id, domain, expires_at: issued.expires_at, running }, () => [
    printable(`The repair bundle for ${node_id} is in ${folder}, good until ${issued.expires_at}.`),
  ])
  print.note(
    running
      ? 'the agent uses it within a second: muster agent explain'
      : 'start the agent: systemctl start muster-agent',
  )
}

const taken = (folder: string, text: string, nowMs: number): RepairBundle => {
  const outcome = lookedAt(() => takeRepairBundle(folder, text, nowMs))
  switch (outcome.kind) {
    case 'taken':
      return outcome.bundle
    case 'unusable':
      throw new Failure({
        exit: exitCodes.refused,
        code: 'BUNDLE_UNUSABLE',
        sentence: `${outcome.why.slice(0, 1).toUpperCase()}${outcome.why.slice(1)}.`,
        next: 'Make one for this node: muster node repair-bundle ID --reason REASON --out FILE',
      })
    case 'not-written':
      throw new Failure({
        exit: exitCodes.notAllowed,
        code: 'NOT_PERMITTED',
        sentence: `${folder} cannot be written.`,
        detail: outcome.errno,
        next: 'Run this as the user of the agent, or as root',
      })
  }
}
