// Which children the agent has, for the agent after it. Of no use after a reboot, so it is not flushed.

import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { readFileIfAny } from '#platform/files.ts'
import { replaceUnflushed } from '#platform/unflushed-file.ts'
import { matchesSchema } from '#platform/json-schema.ts'

const RunningFile = Type.Object({
  version: Type.Literal(1),
  services: Type.Array(
    Type.Object({
      name: Type.String({ maxLength: 63 }),
      digest: Type.String({ maxLength: 64 }),
      pid: Type.Integer({ minimum: 1 }),
      birth: Type.Union([Type.String({ maxLength: 128 }), Type.Null()]),
    }),
  ),
})
export type RecordedService = Static<typeof RunningFile>['services'][number]

/** Room for as many as there may be, so that it can be written over on a full disk. */
const fileBytes = 8 * 1024

const fileIn = (folder: string): string => path.join(folder, 'running.json')

export const writeRunning = (folder: string, services: readonly RecordedService[]): void =>
  replaceUnflushed(fileIn(folder), JSON.stringify({ version: 1, services }), 0o600, fileBytes)

/** None when there is none, or a damaged one. */
export const readRunning = (folder: string): readonly RecordedService[] => {
  try {
    const value: unknown = JSON.parse(readFileIfAny(fileIn(folder)) ?? 'null')
    return matchesSchema(RunningFile, value) ? value.services : []
  } catch {
    return []
  }
}
