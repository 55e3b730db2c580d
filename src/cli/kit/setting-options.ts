// The options of a command that runs a process, from the declarations of its settings.

import { Option, type Command } from 'commander'
import { optionFlags, settingHelp, type Settings } from '#platform/setting.ts'
import { collect } from './verb.ts'

/** `except`: those that the command declares itself. */
export const settingOptions = (command: Command, settings: Settings, except: readonly string[] = []): Command => {
  for (const [name, setting] of Object.entries(settings)) {
    if (setting.isGlobal === true || except.includes(name)) continue
    const option = new Option(optionFlags(name, setting), settingHelp(setting))
    if (setting.kind === 'list' && !option.variadic) option.argParser(collect)
    // Commander would repeat a value that is none of them.
    if (setting.choices !== null && setting.isPrivate !== true) option.choices([...setting.choices])
    command.addOption(option)
  }
  return command
}

/** `--config`, of commands that are set up as the process is. */
export const configOption = (command: Command, variable: string, usual: string): Command =>
  command.option(
    '--config <file>',
    `settings file, in TOML; off: none (default: ${usual}, if it is there; ${variable})`,
  )
