// What the unit of the helper lacks until it knows this host: the directories that agent.toml lists. Everything else is read-only
// for it, whatever that file says.

import type { AgentToml } from './agent-toml.ts'

export const unitAddition = (file: string, { outputs }: AgentToml): string =>
  [
    `# Made by "muster agent helper --print-unit" from ${file}: make it again when that file lists other directories.`,
    '# For /etc/systemd/system/muster-agent-helper.service.d/host.conf',
    '[Service]',
    ...outputs.map(({ directory }) => `ReadWritePaths=-${directory}`),
    ...(outputs.some(({ directory }) => /^\/(home|root|run\/user)(\/|$)/.test(directory))
      ? ['ProtectHome=read-only']
      : []),
  ].join('\n')
