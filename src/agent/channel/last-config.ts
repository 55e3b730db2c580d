// The configuration the node runs under, kept so that it goes on under it while the plane is away. No secrets.

import * as path from 'node:path'
import { Value } from 'typebox/value'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import type { PlaneConfig } from '#wire/channel.ts'
import type { AgentParts } from '../agent-deps.ts'
import { ConfigBody } from './plane-frame.ts'

const fileIn = (stateFolder: string): string => path.join(stateFolder, 'config.json')

/** Null when there is none; a damaged one counts as none, since the plane sends it again. */
export const loadLastConfig = (stateFolder: string): PlaneConfig | null => {
  try {
    const value: unknown = JSON.parse(readFileIfAny(fileIn(stateFolder)) ?? 'null')
    return Value.Check(ConfigBody, value) ? value : null
  } catch {
    return null
  }
}

/** Durable when it returns. */
export const saveLastConfig = (stateFolder: string, config: PlaneConfig): void => {
  makeFolder(stateFolder, 0o700)
  replaceFile(fileIn(stateFolder), JSON.stringify(config, null, 1) + '\n', 0o600)
}

export const eraseLastConfig = ({ config, log }: AgentParts): void => {
  try {
    if (readFileIfAny(fileIn(config.stateFolder)) !== null) removeFile(fileIn(config.stateFolder))
  } catch (error) {
    log.warn({ err: error }, 'an old configuration could not be deleted')
  }
}
