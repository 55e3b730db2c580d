// Brings the helper the statement of what the overlay names, where it asks for one: with a nonce of the helper's, when the
// configuration is another one than the one it was brought for, and when the helper refuses for want of it. The agent verifies
// nothing: the helper does.

import type { AgentCore } from '#agent/core/agent-parts.ts'
import { doublingWaitMs } from '#platform/timers.ts'
import type { AgentRecord } from '#agent/diagnostics/record.ts'
import { callPlane, type CallingAgent } from '#agent/link/plane-client.ts'
import type { Identity } from '#agent/state/credentials.ts'
import { overlayFaultIn } from '#wire/core/overlay-statement.ts'
import { overlayStatementApi } from '#wire/fleet/overlay-statement-api.ts'
import type { Helped, HelperStatements } from './helped-runner.ts'

export type OverlayStatements = {
  /**
   * `if-new`: where none was brought for this configuration yet; `again`: also where one was. True: the helper has just taken one.
   * Never throws: what cannot be brought now is brought later, and the helper goes by the one it has.
   */
  bring(revision: number, when: 'if-new' | 'again'): Promise<boolean>
  /** Why the last attempt has failed; null: it has not. */
  trouble(): string | null
  /** As long as this session lasts the plane can be asked. Resolves when it is over. */
  keep(agent: CallingAgent, identityNow: () => Identity): Promise<void>
}

type Session = { readonly agent: CallingAgent; readonly identityNow: () => Identity }

const firstPauseMs = 25_000
const longestPauseMs = 600_000

export const openOverlayStatements = (
  { clock, log }: Pick<AgentCore, 'clock' | 'log'>,
  record: Pick<AgentRecord, 'changed'>,
  helped: () => Promise<Pick<Helped, 'statements'>>,
): OverlayStatements => {
  let session: Session | null = null
  /** The configuration and the epoch that was tried last, how often in a row, and whether the helper has taken it. */
  let tried = { what: '', times: 0, isTaken: false, notBeforeMs: -Infinity }
  let trouble: string | null = null

  const failed = (why: string): false => {
    log.warn({ why }, 'the helper has no statement of what the overlay names')
    if (why !== trouble)
      record.changed('overlay', overlayFaultIn(why) ?? 'no_statement', `No statement for the helper: ${why}`)
    trouble = why
    return false
  }
  const fetchAndTake = async ({ agent, identityNow }: Session, helper: HelperStatements): Promise<boolean> => {
    try {
      const { nonce } = await helper.nonce()
      const answer = await callPlane(agent, identityNow(), { endpoint: overlayStatementApi.current, json: { nonce } })
      if (answer.kind === 'stopped') return false
      if (answer.kind !== 'answer')
        return failed(`STATEMENT_MISSING: The plane gave none: ${answer.trouble.code}: ${answer.trouble.text}`)
      await helper.take({ statement: answer.value.statement })
      trouble = null
      return true
    } catch (error) {
      // Of the helper: each of its refusals is an error with its words.
      return failed(error instanceof Error ? error.message : String(error))
    }
  }

  return {
    bring: async (revision, when) => {
      const helper = (await helped()).statements
      if (helper === null || session === null) return false
      const what = `${session.identityNow().epoch} ${revision}`
      if (tried.what !== what) tried = { what, times: 0, isTaken: false, notBeforeMs: -Infinity }
      if ((tried.isTaken && when === 'if-new') || clock.monotonicMs() < tried.notBeforeMs) return false
      const isTaken = await fetchAndTake(session, helper)
      const pauseMs = doublingWaitMs(tried.times, firstPauseMs, longestPauseMs)
      tried = { what, times: tried.times + 1, isTaken, notBeforeMs: clock.monotonicMs() + pauseMs }
      return isTaken
    },
    trouble: () => trouble,
    keep: async (agent, identityNow) => {
      const mine: Session = { agent, identityNow }
      session = mine
      if (!agent.signal.aborted)
        await new Promise<void>((resolve) => agent.signal.addEventListener('abort', () => resolve(), { once: true }))
      if (session === mine) session = null
    },
  }
}
