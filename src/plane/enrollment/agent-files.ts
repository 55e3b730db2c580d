// The executables of the agent that this plane hands out.

import type { Log } from '#platform/log.ts'
import { unreadable, type ServedFile } from '#platform/served-file.ts'
import { openServedFolder, type FolderFile, type FolderRules, type ServedFolder } from '#plane/files/served-folder.ts'
import type { AgentArchitecture } from '#wire/enrollment/agent-api.ts'

export type AgentFile = FolderFile & {
  readonly architecture: AgentArchitecture
  /** New bundles name it. */
  readonly current: boolean
}

export type AgentFiles = ServedFolder<AgentFile>

/** `muster-linux-x64.gz` is what new bundles name; with anything between, a release that older bundles name. */
const fileShape = /^muster-(?:[\w.+~-]+-)?linux-(x64|arm64)\.gz$/
const mostFiles = 16

const isCurrent = (name: string): boolean => /^muster-linux-(x64|arm64)\.gz$/.test(name)

const gzipMagic = Buffer.from([0x1f, 0x8b])

const faultOfStart = async (file: string, content: ServedFile): Promise<string | null> => {
  const start = Buffer.alloc(gzipMagic.length)
  try {
    await content.read(start, 0)
  } catch (error) {
    return unreadable(file, error)
  }
  return start.equals(gzipMagic) ? null : `${file} is not compressed by gzip`
}

const agentRules: FolderRules<AgentFile> = {
  ...{ one: 'an agent', several: 'agents', most: mostFiles },
  // What new bundles name comes first.
  chosen: (all) => {
    const names = all.filter((name) => fileShape.test(name))
    return [...names.filter(isCurrent), ...names.filter((name) => !isCurrent(name))]
  },
  describe: (file) => {
    const architecture = fileShape.exec(file.name)?.[1] === 'arm64' ? 'arm64' : 'x64'
    return { ...file, architecture, current: isCurrent(file.name) }
  },
  faultOf: faultOfStart,
}

/** `folders`: of these the first that is there. */
export const openAgentFiles = (folders: readonly string[], log: Log): AgentFiles =>
  openServedFolder(folders, agentRules, log)
