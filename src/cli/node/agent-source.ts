// How a machine gets the agent, by the options of `node bundle` and by what the plane hands out.

import type { OperatorClient } from '#cli/kit/operator-client.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { errno } from '#platform/files.ts'
import { sha256OfFile } from '#platform/served-file.ts'
import { caApi } from '#wire/ca/ca-api.ts'
import { agentExecutableApi } from '#wire/enrollment/agent-api.ts'
import { faultOfBootstrap, type AgentSource } from './bootstrap.ts'

export type AgentOptions = {
  /** Left out: of the plane where it hands agents out and the machine has a token to fetch one with, else in the image. */
  readonly agent?: 'plane' | 'image'
  readonly agentFile?: string
  readonly agentSha256?: string
  readonly agentUrl?: string
}

/** By the options alone; `undecided`: by what the plane has. Nothing is asked for, so it can be called before a token is made. */
export const givenSource = async (options: AgentOptions): Promise<AgentSource | null | 'undecided'> => {
  const { agent, agentFile, agentSha256, agentUrl } = options
  if (agentUrl === undefined) {
    if (agentFile !== undefined || agentSha256 !== undefined)
      throw usageFailure('The digest of an agent needs --agent-url: where the machine gets it.')
    return agent === 'image' ? null : 'undecided'
  }
  if (agent !== undefined) throw usageFailure('Of --agent and --agent-url only one says where the machine gets it.')
  const sha256 =
    agentSha256?.toLowerCase().replace(/^sha256:/, '') ?? (agentFile === undefined ? null : await digestOf(agentFile))
  if (sha256 === null) throw usageFailure('The agent is installed by digest: give --agent-sha256 or --agent-file.')
  const source: AgentSource = { kind: 'elsewhere', from: agentUrl, sha256 }
  const fault = faultOfBootstrap({ nodeId: 'n', join: sampleJoin, agent: source })
  if (fault !== null) throw usageFailure(`That cannot be installed from: ${fault}.`)
  return source
}

/** For judging the rest before there is a token. */
const sampleJoin = `muster1,https://localhost,local,sha256:${'0'.repeat(64)},-`

const digestOf = async (file: string): Promise<string> => {
  try {
    return await sha256OfFile(file)
  } catch (error) {
    if (errno(error) === 'ENOENT') throw usageFailure(`There is no file ${file}; npm run build makes one.`)
    throw usageFailure(`${file} cannot be read: ${errno(error) ?? 'unknown trouble'}.`)
  }
}

/** Null: the plane hands none out. */
export const sourceOfPlane = async (plane: OperatorClient): Promise<AgentSource | null> => {
  const list = await plane.ask(agentExecutableApi.list).catch(nothingOfOlderPlane)
  if (list === null) return null
  if (list.reading) throw stillReading()
  const builds = list.agents
    .filter(({ current }) => current)
    .map(({ architecture, url, digest }) => ({ architecture, url, sha256: digest.replace(/^sha256:/, '') }))
  if (builds.length === 0) return null
  const { roots } = await plane.ask(caApi.bundle)
  return { kind: 'plane', roots: roots.map((pem) => `${pem.trim()}\n`), builds }
}

/** A plane of the release before does not have the call. */
const nothingOfOlderPlane = (error: unknown): null => {
  if (error instanceof Failure && error.code === 'NOT_FOUND') return null
  throw error
}

const stillReading = (): Failure =>
  new Failure({
    exit: exitCodes.fault,
    code: 'UNAVAILABLE',
    sentence: 'The plane is still reading the agents that it hands out.',
    next: 'Try again in a moment; or, where the agent is in the image: --agent image',
  })

export const refuseForHardware = (id: string): Failure =>
  usageFailure(
    `${id} joins by its hardware, so it has no token to fetch the agent with: its image has to have the agent.`,
    `muster node bundle ${id} --agent image, with the agent at /usr/bin/muster in the image`,
  )

export const refuseWithoutAgents = (): Failure =>
  usageFailure(
    'The plane hands out no agent.',
    'See why: muster domain agents; start the plane with --agents FOLDER (muster-linux-x64.gz, muster-linux-arm64.gz)',
  )
