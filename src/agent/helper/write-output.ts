// output.write and output.remove: below a directory that agent.toml lists, and nothing but what check-output.ts has verified.

import * as path from 'node:path'
import { removeGeneration, writeGeneration } from '#agent/programs/write-generation.ts'
import { PlaceIsTaken } from '#platform/file-generations.ts'
import { errno, processOwner, type Owner } from '#platform/files.ts'
import type { Clock } from '#platform/clock.ts'
import { pathExists } from '#platform/paths.ts'
import { findGroup, findUser } from '#platform/system-users.ts'
import { faultOfPath, readTrustedFile, type Trust } from '#platform/trusted-path.ts'
import type { Random } from '#platform/random.ts'
import { allFromPem } from '#pki/pem.ts'
import type { AgentToml, ListedDirectory } from './agent-toml.ts'
import { checkOutput } from './check-output.ts'
import { refused, type AnswerOf, type Refused, type RequestOf } from './verbs.ts'
import type { WrittenLists } from './written-lists.ts'

export type OutputWriter = {
  write(toml: AgentToml, given: RequestOf<'output.write'>): AnswerOf<'output.write'> | Refused
  /** Also where there is none. */
  remove(toml: AgentToml, given: RequestOf<'output.remove'>): AnswerOf<'output.remove'> | Refused
}

export const longestRoots = 256 * 1024

export const openOutputWriter = (clock: Clock, random: Random, trust: Trust, written: WrittenLists): OutputWriter => {
  const write: OutputWriter['write'] = (toml, given) => {
    const { files } = given
    const listed = listedFor(toml, given.name, files.directory)
    if ('code' in listed) return listed
    if ((files.key_mode & ~listed.keyMode) !== 0) {
      const [asked, most] = [files.key_mode, listed.keyMode].map((mode) => `0o${mode.toString(8)}`)
      return refused('NOT_ALLOWED', `agent.toml allows key_mode ${most} in ${listed.directory}, not ${asked}`)
    }
    const pinned = pinnedBy(toml, trust)
    if ('code' in pinned) return pinned
    const fault = faultOfDirectory(listed, trust)
    if (fault !== null) return fault
    const owner = ownerOf(listed, files)
    if (owner !== null && 'code' in owner) return owner
    const nowMs = clock.nowMs()
    const before = written.newest(nowMs)
    if ('code' in before) return before
    const checked = checkOutput({ given, ...pinned, before, nowMs })
    if (checked.kind === 'refused') return checked
    // First: what is in place afterwards is never newer than what is on record.
    const unrecorded = written.add(before, checked.lists)
    if (unrecorded !== null) return unrecorded
    const output = { name: given.name, files }
    const replaced = writeGeneration(listed.directory, { output, ...checked.files }, owner, random)
    return {
      place: path.join(listed.directory, given.name),
      serial: checked.serial,
      roots_left_out: checked.rootsLeftOut,
      durable: replaced === 'durable',
    }
  }
  const remove: OutputWriter['remove'] = (toml, { name, directory }) => {
    const listed = listedFor(toml, name, directory)
    if ('code' in listed) return listed
    if (!pathExists(listed.directory)) return {}
    const fault = faultOfDirectory(listed, trust)
    if (fault !== null) return fault
    removeGeneration(listed.directory, name)
    return {}
  }
  return {
    write: (toml, given) => orRefused(() => write(toml, given)),
    remove: (toml, given) => orRefused(() => remove(toml, given)),
  }
}

/** Compared as it is written: a path with . or .. or a second slash equals none that is listed. */
const listedFor = (toml: AgentToml, name: string, asked: string | null): ListedDirectory | Refused => {
  const listed = toml.outputs.find(({ directory }) => directory === asked)
  if (listed === undefined)
    return refused('NOT_ALLOWED', `agent.toml lists no directory ${asked ?? '(none was named)'} for outputs`)
  return listed.names !== null && !listed.names.includes(name)
    ? refused('NOT_ALLOWED', `agent.toml does not list output ${name} for ${listed.directory}`)
    : listed
}

const faultOfDirectory = ({ directory }: ListedDirectory, trust: Trust): Refused | null => {
  const fault = faultOfPath(directory, trust, { kind: 'folder', links: 'refused' })
  return fault === null ? null : refused('PATH_UNSAFE', `Nothing is written in ${directory}: ${fault}`)
}

type Pinned = {
  readonly node: NonNullable<AgentToml['node']>
  readonly pinnedRoots: readonly Uint8Array[]
  readonly outsideRoots: readonly Uint8Array[]
}

const pinnedBy = ({ node, programRoots, outsideRoots }: AgentToml, trust: Trust): Pinned | Refused => {
  if (node === null) return refused('CONFIG_INVALID', 'agent.toml does not say which node this is: [node] domain, id')
  if (programRoots === null) return refused('CONFIG_INVALID', 'agent.toml names no file with roots: [programs] roots')
  const pinned = rootsIn(programRoots, trust)
  if ('code' in pinned) return pinned
  const outside = outsideRoots === null ? [] : rootsIn(outsideRoots, trust)
  return 'code' in outside ? outside : { node, pinnedRoots: pinned, outsideRoots: outside }
}

const rootsIn = (file: string, trust: Trust): readonly Uint8Array[] | Refused => {
  const read = readTrustedFile(file, trust, longestRoots)
  if ('fault' in read) return refused('CONFIG_INVALID', read.fault)
  const roots = allFromPem('CERTIFICATE', read.text)
  return roots ?? refused('CONFIG_INVALID', `${file} is not a list of certificates in PEM`)
}

/** Null: the user of the helper. What is named must be listed; what is not named is the first that is. */
const ownerOf = (
  listed: ListedDirectory,
  { owner, group }: RequestOf<'output.write'>['files'],
): Owner | Refused | null => {
  if (owner !== null && !listed.owners.includes(owner)) {
    return refused('NOT_ALLOWED', `agent.toml does not list owner ${owner} for ${listed.directory}`)
  }
  if (group !== null && !listed.groups.includes(group)) {
    return refused('NOT_ALLOWED', `agent.toml does not list group ${group} for ${listed.directory}`)
  }
  const userName = owner ?? listed.owners[0]
  const groupName = group ?? listed.groups[0]
  if (userName === undefined && groupName === undefined) return null
  const user = userName === undefined ? processOwner() : findUser(userName)
  if (user === null) return refused('NOT_ALLOWED', `There is no user ${userName} on this host`)
  const gid = groupName === undefined ? user.gid : findGroup(groupName)
  return gid === null ? refused('NOT_ALLOWED', `There is no group ${groupName} on this host`) : { uid: user.uid, gid }
}

/** What the system refuses is a sentence for the agent; the generation before is in place. */
const orRefused = <T>(run: () => T): T | Refused => {
  try {
    return run()
  } catch (error) {
    if (error instanceof PlaceIsTaken) return refused('PLACE_TAKEN', error.message)
    const code = errno(error)
    if (code === null) throw error
    if (code === 'ENOSPC' || code === 'EDQUOT') return refused('DISK_FULL', `The disk is full (${code})`)
    return refused('NOT_DONE', `The system refused it: ${error instanceof Error ? error.message : code}`)
  }
}
