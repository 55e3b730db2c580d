// The verbs of muster-agent-helper for tasks, as the agent uses them. The helper verifies, remembers and runs (ruling 21); the agent
// carries tasks to it and results to the plane, and nothing it says makes the helper act.

import type { TaskFault } from '#wire/tasks/task-faults.ts'

/** How a task ended on this host. */
export type HostResult = {
  /** Null: it ran to its end. `INTERRUPTED`: whether it had an effect is unknown. */
  readonly code: TaskFault | null
  readonly exit_code: number | null
  readonly detail: string | null
  readonly output: { readonly head: string; readonly tail: string; readonly bytes: number } | null
  readonly started_at_ms: number | null
  readonly evidence: Readonly<Record<string, unknown>> | null
}

const longestDetail = 256

export const ended = (code: TaskFault | null, detail: string | null, more: Partial<HostResult> = {}): HostResult => ({
  ...{ code, exit_code: null, detail: detail === null ? null : detail.slice(0, longestDetail) },
  ...{ output: null, started_at_ms: null, evidence: null },
  ...more,
})

export type HeldTask = {
  readonly id: string
  readonly type: string
  readonly state: 'running' | 'ended'
  /** Null: it runs, or the helper shows its result when others are forgotten. */
  readonly result: HostResult | null
}

/** `again`: the helper does not answer, or has no room now. */
export type BeginOutcome =
  | { readonly kind: 'begun' | 'known' | 'yours' }
  | {
      readonly kind: 'refused'
      readonly fault: TaskFault
      readonly why: string
      /** It did not look whether it has begun with the task; left out: it did. */
      readonly isUnjudged?: true
    }
  | {
      readonly kind: 'again'
      readonly why: string
      /** It may have begun with the task; left out: it has not. */
      readonly isUnsure?: true
      /** Not before; left out: soon. */
      readonly afterMs?: number
    }

export type HeldTasks = {
  /** Of the newest statement of verifiers that it has taken; null: none, and it takes no task that was issued before the first. */
  readonly number: number | null
  readonly tasks: readonly HeldTask[]
}

export type TaskHelper = {
  /** It takes tasks, as it said last. */
  takes(): boolean
  /** Resolves once it takes tasks, or when `signal` is aborted. */
  taken(signal: AbortSignal): Promise<void>
  /** `file`: where the bytes are that a task asks for; null: it asks for none. */
  begin(statement: string, task: string, file: string | null): Promise<BeginOutcome>
  /** Null: the helper does not answer now; so with the next three. */
  nonce(): Promise<string | null>
  look(): Promise<HeldTasks | null>
  /** Gives it a statement of verifiers without a task. A refusal comes again with each task, which says so to the plane. */
  learn(statement: string): Promise<'learned' | 'refused' | null>
  /** Says how a task ended that the agent itself carried out. */
  ended(id: string, result: HostResult): Promise<'kept' | null>
  /** The plane has its result. */
  forget(id: string): Promise<'forgotten' | null>
}
