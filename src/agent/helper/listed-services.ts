// The services that agent.toml lists, kept within what it lists: one that was taken out of that file, or is listed otherwise than it
// was started, is stopped, whether or not the agent asks for anything.

import { createHash } from 'node:crypto'
import type { Log } from '#platform/log.ts'
import type { SystemUser } from '#platform/system-users.ts'
import type { Timers } from '#platform/timers.ts'
import type { UnitLimits } from '#platform/transient-units.ts'
import type { ListedService } from './agent-toml.ts'
import type { Turns } from './turns.ts'
import type { Refused, RequestOf, ServiceState } from './verbs.ts'

/** What agent.toml and the agent together have made of it. */
export type ServiceOrder = Pick<RequestOf<'service.start'>, 'name' | 'digest' | 'restart'> & {
  readonly command: readonly string[]
  /** Null: the user of the helper, where it was started by hand. */
  readonly user: SystemUser | null
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly limits: UnitLimits
  readonly listing: string
}

/** `listing`: which entry of agent.toml it was started by. */
export type StartedService = Pick<ServiceState, 'name' | 'digest'> & { readonly listing: string }

/** Who runs them. Methods throw when it says no. */
export type ServiceHost = {
  /** Left alone when it is there as this one already, also where its restart policy lets it be; else in the place of the one before. */
  start(order: ServiceOrder): Promise<'started' | 'kept'>
  /** Returns when it has ended. Also where there is none. */
  stop(name: string): Promise<void>
  started(): Promise<readonly StartedService[]>
  status(): Promise<readonly ServiceState[]>
  /** Children end; units go on. */
  close(): Promise<void>
}

export type ListedServices = Pick<ServiceHost, 'status' | 'close'> & {
  /** `order`: made when its turn has come, by agent.toml as it is then. */
  start(name: string, order: () => ServiceOrder | Refused): Promise<'started' | 'kept' | Refused>
  stop(name: string): Promise<void | Refused>
}

/** What an entry of agent.toml allows, in short: two that allow the same are the same. Not of the values that the vCluster sets. */
export const listingOf = ({
  executable,
  user,
  arguments: words,
  environment,
  workingDirectory,
}: ListedService): string =>
  createHash('sha256')
    .update(JSON.stringify([executable, user, words, environment, workingDirectory]))
    .digest('hex')
    .slice(0, 16)

const usualLookMs = 5_000

/** `listed`: what agent.toml lists now; null where it cannot be said, and then what runs goes on. */
export const openListedServices = (
  host: ServiceHost,
  listed: () => ReadonlyMap<string, ListedService> | null,
  turns: Turns,
  { timers, log }: { readonly timers: Timers; readonly log: Log },
  lookEveryMs = usualLookMs,
): ListedServices => {
  /** Those that agent.toml has ended, until the agent has them started or stopped. */
  const ended = new Map<string, ServiceState>()
  let compared: ReadonlyMap<string, ListedService> | null = null
  let lastSeen: ReadonlyMap<string, ListedService> | null = null
  let isStale = true
  let isLooking = false
  let asking: Promise<readonly ServiceState[]> | null = null

  const faultOf = ({ name, listing }: StartedService, allowed: ReadonlyMap<string, ListedService>): string | null => {
    const entry = allowed.get(name)
    if (entry === undefined) return `agent.toml does not list service ${name} any more`
    return listingOf(entry) === listing ? null : `agent.toml lists service ${name} otherwise than it was started`
  }
  /** Null: done, or nothing is to be done; else it has to be looked at again. */
  const endUnlisted = async (name: string): Promise<'undecided' | null> => {
    // Looked at again in its turn: the agent may have had it started anew.
    const allowed = listed()
    const service = (await host.started()).find((one) => one.name === name)
    if (allowed === null) return 'undecided'
    const fault = service === undefined ? null : faultOf(service, allowed)
    if (service === undefined || fault === null) return null
    log.warn({ service: name }, fault)
    await host.stop(name)
    const said = `could not be started again: ${fault}`
    // Without its digest: it is not the one that is wanted, and the agent has it started again if it may.
    ended.set(name, { name, digest: '', state: 'ended', restarts: 0, pid: null, ended: said, lines: [] })
    return null
  }
  const look = async (): Promise<void> => {
    const allowed = listed()
    // Two looks that agree: what an editor or a copy has written half of may be a whole file that lists less.
    const isSteady = allowed !== null && lastSeen !== null && isSame(allowed, lastSeen)
    lastSeen = allowed
    if (!isSteady || (!isStale && compared !== null && isSame(allowed, compared))) return
    isStale = false
    for (const service of await host.started()) {
      if (faultOf(service, allowed) === null) continue
      const done = await turns.take('service', service.name, () => endUnlisted(service.name))
      if (done !== null) isStale = true
    }
    compared = allowed
  }
  const tick = (): void => {
    if (isLooking) return
    isLooking = true
    void look()
      .catch((error: unknown) => {
        isStale = true
        log.error({ err: error }, 'the services could not be compared with agent.toml')
      })
      .finally(() => (isLooking = false))
  }
  const cancel = timers.every(lookEveryMs, tick)
  tick()

  return {
    start: (name, orderNow) =>
      turns.take('service', name, async () => {
        const order = orderNow()
        if ('code' in order) return order
        // Before it is there: agent.toml may change while it is being started.
        isStale = true
        ended.delete(name)
        try {
          return await host.start(order)
        } finally {
          isStale = true
        }
      }),
    // Also where it is not listed any more: what runs can be stopped.
    stop: (name) =>
      turns.take('service', name, async () => {
        ended.delete(name)
        await host.stop(name)
      }),
    status: () => {
      asking ??= host.status().finally(() => (asking = null))
      return asking.then((services) => [
        ...services,
        ...[...ended.values()].filter(({ name }) => !services.some((one) => one.name === name)),
      ])
    },
    close: async () => {
      cancel()
      await host.close()
    },
  }
}

const isSame = (one: ReadonlyMap<string, ListedService>, other: ReadonlyMap<string, ListedService>): boolean =>
  one.size === other.size &&
  [...one].every(([name, entry]) => {
    const before = other.get(name)
    return before !== undefined && listingOf(entry) === listingOf(before)
  })
