// `muster agent run --check-config`: what an agent would run with, and what of it cannot work on this machine.

import type { AgentConfig, GivenAgentConfig } from '#agent/core/config.ts'
import { agentSettings } from '#agent/core/settings.ts'
import { defaultAgentToml } from '#agent/helper/agent-toml.ts'
import { readAgentToml } from '#agent/helper/read-agent-toml.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { showSettings } from '#cli/kit/show-settings.ts'
import { fileFault, folderFault, pathExists } from '#platform/paths.ts'
import { ownTrust } from '#platform/trusted-path.ts'

export const checkAgent = (cli: Cli, options: GlobalOptions, given: GivenAgentConfig): void => {
  const { config, values, file, problems } = given
  showSettings(cli, options, {
    settings: agentSettings,
    values,
    follows: config === null ? {} : followsFrom(config),
    file,
    problems,
    faults: config === null ? [] : faultsOf(config),
    warnings: config === null ? [] : warningsOf(config),
  })
}

const followsFrom = ({ joinMethod, keyStorage, recovery }: AgentConfig): Readonly<Record<string, string>> => ({
  joinMethod,
  keyStorage,
  recovery,
})

const faultsOf = ({ stateFolder, hardwareFile, bootstrap, publish, agentToml }: AgentConfig): readonly string[] => {
  const files = [hardwareFile, bootstrap?.certificateFile ?? null, bootstrap?.keyFile ?? null]
  const found = [
    folderFault(stateFolder),
    publish === null ? null : folderFault(publish),
    ...files.map((file) => (file === null ? null : fileFault(file))),
    boundFault(agentToml),
  ]
  return found.filter((fault) => fault !== null)
}

/** Without a file of that name nothing is allowed, which is no fault. */
const boundFault = (named: string | null): string | null => {
  const file = named ?? defaultAgentToml
  if (named === null && !pathExists(file)) return null
  const read = readAgentToml(file, ownTrust())
  return read.kind === 'refused' ? read.message : null
}

const warningsOf = ({ join, stateFolder, helperSocket }: AgentConfig): readonly string[] => [
  ...(join.kind === 'file' && !pathExists(join.path) && !pathExists(stateFolder)
    ? [`there is no join string in ${join.path}, and no identity in ${stateFolder} yet: muster token create prints one`]
    : []),
  ...(helperSocket !== null && !pathExists(helperSocket) ? [`no helper listens on ${helperSocket}`] : []),
]
