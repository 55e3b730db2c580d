// Every setting of `muster agent helper`: what it takes, what it means and when to change it. docs/SETTINGS.md is made from this. There is
// no file for them: agent.toml bounds what it does, and a helper of 0.4 would refuse all of one with a table that it does not know.

import { logSettings } from '#platform/log-settings.ts'
import { pathSetting, textSetting } from '#platform/setting.ts'
import { defaultAgentToml } from './agent-toml.ts'

export const helperSettings = {
  config: pathSetting(defaultAgentToml, {
    value: 'file',
    variable: 'MUSTER_AGENT_TOML',
    emptyIsNone: true,
    meaning: 'What it may do: the bound that the owner of the host sets',
    change: 'To run one by hand, as an ordinary user.',
  }),
  socket: pathSetting(null, {
    value: 'path',
    variable: 'MUSTER_HELPER_SOCKET',
    emptyIsNone: true,
    meaning: 'Where the agent reaches it',
    unset: 'what systemd hands over, else /run/muster-agent-helper/socket; without root below XDG_RUNTIME_DIR',
    change: 'To run one by hand. The folder has to be one that only its user can change.',
  }),
  agentUser: textSetting((text) => text, null, {
    value: 'user',
    variable: null,
    takes: 'the name of a user',
    meaning: 'Who may open the socket',
    unset: 'as root muster-agent, else the user of the helper',
    change: 'Where the agent runs as another user.',
  }),
  state: pathSetting(null, {
    value: 'folder',
    variable: null,
    standIn: 'STATE_DIRECTORY',
    meaning: 'Where it keeps what it wrote',
    unset: 'as root /var/lib/muster-agent-helper, else beside the socket',
    change: 'To run one by hand.',
  }),
  ...logSettings,
}
