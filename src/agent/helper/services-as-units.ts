// Services of agent.toml as units of systemd, which outlive the helper. Their description holds what they were started as, so that
// a helper that was started anew knows them.

import {
  callSystemd,
  hardOpenFiles,
  lastOfUnits,
  limitProperties,
  literalWords,
  openUnitEnvironments,
  restartProperty,
  showUnits,
  stopUnits,
  type ShownUnit,
} from '#platform/transient-units.ts'
import { shownLine } from '#platform/user-process.ts'
import type { ServiceHost, ServiceOrder, StartedService } from './listed-services.ts'
import type { ServiceState } from './verbs.ts'

/** Made by the helper's unit. It stays when the helper ends: systemd reads a file in it with every start of its service. */
export const environmentFolder = '/run/muster-agent-helper-services'

const shownLines = 5

/** `mark`: what tells the units of two helpers on one machine apart. `folder`: for environments, which may hold secrets. */
export const servicesAsUnits = (mark: string, folder: string): ServiceHost => {
  const prefix = `muster-helper-${mark}-`
  const unitOf = (name: string): string => `${prefix}${name}.service`
  const environments = openUnitEnvironments(folder, prefix)

  const units = async (): Promise<readonly Unit[]> => (await showUnits(prefix)).map(unitFrom)
  const stop = async (name: string): Promise<void> => {
    await stopUnits([unitOf(name)])
    environments.drop(unitOf(name))
  }
  let swept: Promise<void> | null = null
  const dropOldEnvironments = async (): Promise<void> =>
    environments.keepOnly((await units()).map(({ name }) => unitOf(name)))
  /** Of services that ended while no helper ran. What they have left keeps nothing from being done: it is looked for again. */
  const sweep = async (): Promise<void> => {
    swept ??= dropOldEnvironments().catch(() => void (swept = null))
    await swept
  }
  const begin = async (order: ServiceOrder): Promise<void> => {
    const unit = unitOf(order.name)
    const file = environments.write(unit, order.env)
    try {
      const limits = await limitsWithin(order.limits)
      await callSystemd('systemd-run', startArguments(unit, { ...order, limits }, file))
    } catch (error) {
      environments.drop(unit)
      throw error
    }
  }
  return {
    stop,
    started: async () => (await units()).map(({ name, digest, listing }) => ({ name, digest, listing })),
    status: async () => {
      // No other service may be started for a long time.
      await sweep()
      const all = await units()
      const wrong = all.filter(({ state, restarts }) => state === 'ended' || restarts > 0)
      const written = await lastOfUnits(
        wrong.map(({ name }) => unitOf(name)),
        shownLines,
      )
      return all.map(({ listing: _listing, isKept: _isKept, ...unit }) => ({
        ...unit,
        lines: linesIn(written.get(unitOf(unit.name)) ?? ''),
      }))
    },
    start: async (order) => {
      await sweep()
      const before = (await units()).find(({ name }) => name === order.name)
      const isSame = before?.digest === order.digest && before.listing === order.listing
      if (isSame && (before.isKept || order.restart === 'never')) return 'kept'
      if (before !== undefined) await stop(order.name)
      await begin(order)
      return 'started'
    },
    close: () => Promise.resolve(),
  }
}

/** The agent may take from what the host gives to every service, and add nothing. */
const limitsWithin = async ({ openFiles, ...limits }: ServiceOrder['limits']): Promise<ServiceOrder['limits']> => ({
  ...limits,
  openFiles: openFiles === null ? null : Math.min(openFiles, await hardOpenFiles()),
})

const startArguments = (unit: string, order: ServiceOrder, environmentFile: string | null): readonly string[] => [
  '--quiet',
  '--no-ask-password',
  `--unit=${unit}`,
  `--description=Muster service ${order.name} ${order.digest} ${order.listing}`,
  ...(order.user === null ? [] : [`--uid=${order.user.name}`, `--gid=${order.user.gid}`]),
  '--service-type=exec',
  `--property=Restart=${restartProperty[order.restart]}`,
  // One that may end is kept, so that it can be seen how.
  ...(order.restart === 'always' ? [] : ['--property=RemainAfterExit=yes']),
  // Slow enough for systemd's own limit of five starts in ten seconds never to end it.
  '--property=RestartSec=3s',
  '--property=TimeoutStopSec=10s',
  '--property=NoNewPrivileges=yes',
  ...limitProperties(order.limits),
  `--working-directory=${order.cwd}`,
  ...(environmentFile === null ? [] : [`--property=EnvironmentFile=${environmentFile}`]),
  '--',
  ...literalWords(order.command),
]

/** `isKept`: it runs, is about to be started again, or has ended and is to be left so. */
type Unit = ServiceState & StartedService & { readonly isKept: boolean }

const unitFrom = ({ name, description, active, hasExited, restarts, pid, result, exitStatus }: ShownUnit): Unit => {
  const isUp = ['active', 'reloading'].includes(active) && !hasExited
  const [, digest = '', listing = ''] = /([0-9a-f]{8,64}) ([0-9a-f]{16})$/.exec(description) ?? []
  return {
    name,
    digest,
    listing,
    isKept: ['active', 'activating', 'reloading'].includes(active),
    state: isUp ? 'running' : 'ended',
    restarts,
    pid,
    ended: isUp ? null : `${result || 'ended'}, exit code ${exitStatus || '?'}`,
    lines: [],
  }
}

const linesIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map(shownLine)
