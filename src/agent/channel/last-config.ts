// The configuration the node runs under, kept so that it goes on under it while the plane is away. It may hold secrets, which an
// operator has put into the environment or the files of a service: only the agent's user can read it. Keys of the node are not in it.

import * as path from 'node:path'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { PlaneConfig } from '#wire/channel/channel.ts'
import { attempt, type Kept } from '#agent/state/identity-keeper.ts'
import { ConfigBody } from './plane-frame.ts'

export type ConfigKeeper = {
  /** Null before the plane has sent one. */
  current(): PlaneConfig | null
  /**
   * In force at once, whether or not it could be written; `retry` writes it again. A field that an older plane does not send
   * keeps its last value: rolling an upgrade back stops no service.
   */
  keep(next: PlaneConfig): Kept
  /** Of an earlier enrollment: its revisions mean nothing to the next. */
  forget(): Kept
  /** In force until another one arrives, with any revision: a recovered node goes on under it. */
  outdate(): Kept
  /** Writes, or deletes, what could not be before. */
  retry(): Kept
  isPersisted(): boolean
}

export const openConfigKeeper = (stateFolder: string): ConfigKeeper => {
  const file = path.join(stateFolder, 'config.json')
  let config = readConfig(file)
  let persisted = true

  const write = (): Kept => {
    const result = attempt(() => {
      if (config === null) return erase(file)
      makeFolder(stateFolder, 0o700)
      replaceFile(file, JSON.stringify(config, null, 1) + '\n', 0o600)
    })
    persisted = result.persisted
    return result
  }
  const enforce = (next: PlaneConfig | null): Kept => {
    config = next
    return write()
  }
  return {
    current: () => config,
    keep: (next) => enforce({ ...unspokenOf(config), ...next }),
    forget: () => enforce(null),
    outdate: () => enforce(config === null ? null : { ...config, revision: 0 }),
    retry: () => (persisted ? { persisted } : write()),
    isPersisted: () => persisted,
  }
}

const unspokenOf = (config: PlaneConfig | null): Pick<PlaneConfig, 'overlay' | 'wireguard' | 'outputs'> => ({
  ...(config?.overlay === undefined ? {} : { overlay: config.overlay }),
  ...(config?.wireguard === undefined ? {} : { wireguard: config.wireguard }),
  ...(config?.outputs === undefined ? {} : { outputs: config.outputs }),
})

const erase = (file: string): void => {
  if (readFileIfAny(file) !== null) removeFile(file)
}

/** A damaged one counts as none, since the plane sends it again. */
const readConfig = (file: string): PlaneConfig | null => {
  try {
    const value: unknown = JSON.parse(readFileIfAny(file) ?? 'null')
    return matchesSchema(ConfigBody, value) ? value : null
  } catch {
    return null
  }
}
