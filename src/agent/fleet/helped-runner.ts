// Services and checks through muster-agent-helper (ruling 21), which runs them as a user and from an executable that the host's
// agent.toml lists under their name, never as root or as the agent's user. What that file does not list the helper refuses, and
// its refusal is shown as the reason why the service does not run.

import type { Clock } from '#platform/clock.ts'
import type { CheckDefinition, ServiceDefinition } from '#wire/fleet/overlay-definition.ts'
import { lastLines } from './last-lines.ts'
import {
  failsAfter,
  settledAfterMs,
  type RunningService,
  type ServiceRunner,
  type ServiceState,
} from './service-runner.ts'
import type { WantedService, WantedTerms } from './wanted-services.ts'

/** The verbs of the helper for services. They throw with its refusal. */
export type HelperServices = {
  /** `service.start`: left alone when it runs with that digest, else started in the place of the one before. */
  start(request: StartRequest): Promise<{ readonly outcome: 'started' | 'kept' }>
  /** `service.stop`: returns when it has ended. */
  stop(request: { readonly name: string }): Promise<unknown>
  /** `service.status` */
  status(): Promise<{ readonly services: readonly HelpedService[] }>
}

type StartRequest = {
  readonly name: string
  readonly digest: string
  /** After the executable, which agent.toml names. */
  readonly arguments: string[]
  readonly environment: Record<string, string>
  readonly working_directory: string | null
  readonly restart: WantedTerms['restart']
  /** Left out: none. */
  readonly limits?: {
    readonly memory_bytes: number | null
    readonly cpus: number | null
    readonly open_files: number | null
  }
  /** What the plane has signed: a helper that asks for that starts nothing else. */
  readonly overlay: Shown<ServiceDefinition>
}

type Shown<D> = { readonly definition: D; readonly folder: string }

type HelpedService = {
  readonly name: string
  readonly digest: string
  readonly state: 'running' | 'ended'
  readonly restarts: number
  readonly pid: number | null
  /** How it ended last; null: it has not. */
  readonly ended: string | null
  readonly lines: readonly string[]
  /** Limits that it cannot set; left out: it sets all of them. */
  readonly unapplied?: readonly string[] | undefined
}

/** The verb of the helper for checks: a program that agent.toml lists under that name. */
export type HelperChecks = {
  /** `check.run` */
  run(request: {
    readonly name: string
    readonly arguments: string[]
    readonly overlay: Shown<CheckDefinition>
  }): Promise<{
    readonly exit_code: number | null
    readonly timed_out: boolean
    readonly line: string | null
    readonly how: string
  }>
}

/** The verbs of the helper for the statement of what the overlay names. They throw with its refusal. */
export type HelperStatements = {
  /** `overlay.nonce` */
  nonce(): Promise<{ readonly nonce: string }>
  /** `overlay.take` */
  take(request: { readonly statement: string }): Promise<unknown>
}

export type Helped = {
  /** False: the helper is away, or its agent.toml cannot be read. What runs stays with who runs it. */
  readonly isKnown: boolean
  /** Null: the agent runs them without the helper; so with the checks. */
  readonly services: HelperServices | null
  readonly checks: HelperChecks | null
  /** Null: it asks for no statement. */
  readonly statements: HelperStatements | null
}

export const noHelp: Helped = { isKnown: false, services: null, checks: null, statements: null }

export const openHelperRunner = (helper: HelperServices, clock: Pick<Clock, 'monotonicMs'>): ServiceRunner => {
  const wanted = new Map<string, WantedService>()
  /** Since when each has its process. */
  const seen = new Map<string, { readonly pid: number | null; readonly sinceMs: number }>()

  const isSettled = ({ name, pid }: HelpedService): boolean => {
    const before = seen.get(name)
    if (before === undefined || before.pid !== pid) seen.set(name, { pid, sinceMs: clock.monotonicMs() })
    return clock.monotonicMs() - (seen.get(name)?.sinceMs ?? 0) >= settledAfterMs
  }
  const stateOf = (service: HelpedService, restart: WantedTerms['restart']): ServiceState => {
    const settled = isSettled(service)
    if (service.state === 'running') return settled || service.restarts < failsAfter ? 'running' : 'failed'
    const isWell = service.ended !== null && service.ended.endsWith('exit code 0')
    if (restart !== 'always' && isWell) return 'ended'
    const isHopeless = restart === 'never' || /could not be started/.test(service.ended ?? '')
    return isHopeless || service.restarts >= failsAfter ? 'failed' : 'starting'
  }
  return {
    kind: 'helper',
    lookEveryMs: 2_000,
    services: async () =>
      (await helper.status()).services.map((service): RunningService => {
        const terms = wanted.get(service.name)?.terms
        const state = stateOf(service, terms?.restart ?? 'always')
        const isWrong = state === 'failed' || state === 'starting'
        return {
          ...{ name: service.name, digest: service.digest, state, restarts: service.restarts, pid: service.pid },
          error: isWrong ? service.ended : null,
          output: isWrong ? lastLines(service.lines.join('\n'), terms?.environment) : [],
          unapplied: [
            // The host's own file decides about it.
            ...((terms?.user ?? null) === null ? [] : ['user (the one in agent.toml)']),
            ...(service.unapplied ?? []),
          ],
        }
      }),
    ensure: async (service, env) => {
      const { name, command, digest, terms, shown } = service
      wanted.set(name, service)
      const { outcome } = await helper.start({
        ...{ name, digest, arguments: command.slice(1), restart: terms.restart },
        environment: { ...env, ...terms.environment },
        working_directory: terms.workingDirectory === '/' ? null : terms.workingDirectory,
        ...limitsOf(terms),
        overlay: shown,
      })
      return outcome
    },
    stop: async (names) => {
      await Promise.all(names.map((name) => helper.stop({ name })))
    },
    close: () => Promise.resolve(),
  }
}

const limitsOf = ({ memoryBytes, cpus, openFiles }: WantedTerms): Pick<StartRequest, 'limits'> =>
  memoryBytes === null && cpus === null && openFiles === null
    ? {}
    : { limits: { memory_bytes: memoryBytes, cpus, open_files: openFiles } }
