// Puts an overlay in force: stops services that are gone, switches the files, then starts services that are new or differ. A
// service with the same command and the same files is not touched, whichever vCluster names it.

import type { ConfigOverlay } from '#wire/fleet/overlay.ts'
import type { AppliedFiles, OverlayFiles } from './apply-files.ts'
import type { ServiceRunner } from './service-runner.ts'
import type { Digest } from './secret-digest.ts'
import { wantedServices, type WantedService } from './wanted-services.ts'

export type InForce = {
  /** Whether the files are in force. */
  readonly applied: boolean
  /** Why not. */
  readonly detail: string | null
  /** Services that their runner did not start, and why. */
  readonly unstarted: readonly Unstarted[]
  readonly stopped: readonly string[]
  readonly started: readonly string[]
}

export type Unstarted = { readonly name: string; readonly why: string }

export type PutInForce = {
  readonly files: OverlayFiles
  /** Null: nothing runs, and nothing is to. */
  readonly runner: ServiceRunner | null
  readonly overlay: Pick<ConfigOverlay, 'files' | 'services'>
  readonly env: Readonly<Record<string, string>>
  readonly secretDigest: Digest
  /** `anew`: the files are there, and not what they were. */
  readonly how: 'as needed' | 'anew'
}

export const putInForce = async ({ files, runner, overlay, env, secretDigest, how }: PutInForce): Promise<InForce> => {
  const wanted = wantedServices(overlay, files.current, secretDigest)
  const running = runner === null ? [] : await runner.services()
  const gone = running.map(({ name }) => name).filter((name) => !wanted.some((service) => service.name === name))
  await runner?.stop(gone)
  const written = how === 'as needed' && files.areInForce(overlay.files) ? done : files.apply(overlay.files)
  // The helper runs them as users of their own.
  if (runner?.kind === 'helper' && written.kind === 'applied') files.letOthersIn()
  const startable = written.kind === 'applied' ? wanted : wanted.filter(({ needsFiles }) => !needsFiles)
  const { started, unstarted } = await startAll(runner, startable, env)
  const detail = written.kind === 'applied' ? null : written.detail
  return { applied: detail === null, detail, unstarted, stopped: gone, started }
}

const done: AppliedFiles = { kind: 'applied' }

/** One that cannot be started keeps none of the others from it. */
const startAll = async (
  runner: ServiceRunner | null,
  wanted: readonly WantedService[],
  env: Readonly<Record<string, string>>,
): Promise<Pick<InForce, 'started' | 'unstarted'>> => {
  const started: string[] = []
  const unstarted: Unstarted[] = []
  for (const service of runner === null ? [] : wanted) {
    try {
      if ((await runner?.ensure(service, env)) === 'started') started.push(service.name)
    } catch (error) {
      unstarted.push({ name: service.name, why: error instanceof Error ? error.message : String(error) })
    }
  }
  return { started, unstarted }
}
