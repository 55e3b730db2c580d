// `--check-config`: every setting of a process with its value and where it came from, and what is wrong.

import type { FileSettings, Resolved, Source } from '#platform/given-settings.ts'
import { keyName, optionName, type Setting, type Settings } from '#platform/setting.ts'
import { callerName } from '#platform/this-process.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { exitCodes } from './exit-codes.ts'
import { printer } from './print.ts'
import { printable } from './printable.ts'
import { renderHeadedTable } from './table.ts'

export type CheckedSettings = {
  readonly settings: Settings
  readonly values: Readonly<Record<string, Resolved<unknown>>>
  /** What follows for settings that are not set, as it would be written; by their names. */
  readonly follows: Readonly<Record<string, string>>
  /** The file that was read; null: none. */
  readonly file: Pick<FileSettings, 'file'> | null
  /** Of the settings themselves. */
  readonly problems: readonly string[]
  /** Of this machine: files, folders. */
  readonly faults: readonly string[]
  readonly warnings: readonly string[]
}

/** Ends with `usage` for a wrong setting, and with `misconfigured` where only the machine does not fit. */
export const showSettings = (cli: Cli, options: Pick<GlobalOptions, 'output'>, checked: CheckedSettings): void => {
  const { problems, faults, warnings, file } = checked
  const wrong = [...problems, ...faults]
  const rows = Object.entries(checked.settings).map(([name, setting]) =>
    rowOf(name, setting, checked.values[name], checked.follows[name]),
  )
  const body = {
    ok: wrong.length === 0,
    file: file?.file ?? null,
    checked_as: callerName(),
    settings: rows.map(({ shown: _shown, ...row }) => row),
    problems: wrong,
    warnings,
  }
  printer(cli, options).answer(body, (paint) => [
    ...renderHeadedTable(
      ['SETTING', 'VALUE', 'FROM'],
      rows.map((row) => [row.key, printable(row.shown), placeOf(row)]),
      paint,
    ),
    '',
    `file      ${file?.file ?? 'none'}`,
    ...warnings.map((warning) => `warning   ${printable(cli.hints.asCalled(warning))}`),
    ...wrong.map((problem) => `wrong     ${printable(cli.hints.asCalled(problem))}`),
    ...(wrong.length === 0 ? [`ok        as far as it can be told without starting, as user ${body.checked_as}`] : []),
  ])
  if (problems.length > 0) cli.exit.finish(exitCodes.usage)
  else if (faults.length > 0) cli.exit.finish(exitCodes.misconfigured)
}

type Row = {
  readonly key: string
  readonly option: string
  readonly variable: string | null
  readonly value: string | number | boolean | readonly string[] | null
  readonly shown: string
  readonly from: Source['from']
  readonly file: string | null
  readonly line: number | null
}

const rowOf = (
  name: string,
  setting: Setting<unknown>,
  resolved: Resolved<unknown> | undefined,
  follows: string | undefined,
): Row => {
  const source = resolved?.source ?? { from: 'default' }
  const given = resolved?.texts?.map((text) => shownText(setting, text, resolved.value === null)) ?? null
  const texts = given ?? (follows === undefined ? null : [follows])
  return {
    key: keyName(name),
    option: optionName(name),
    variable: source.from === 'environment' ? source.variable : setting.variable,
    value: texts === null ? null : typed(setting, texts),
    shown: texts === null || texts.length === 0 ? `(${setting.unset ?? 'none'})` : texts.join(', '),
    from: source.from,
    file: source.from === 'file' ? source.file : null,
    line: source.from === 'file' ? source.line : null,
  }
}

const typed = ({ kind }: Setting<unknown>, texts: readonly string[]): Row['value'] => {
  if (kind === 'list') return texts
  const text = texts[0] ?? ''
  if (kind === 'number') return /^\d+$/.test(text) ? Number(text) : text
  return kind === 'switch' ? text === 'true' || text === '1' : text
}

/** The path of a webhook is a secret to many receivers. */
const shownText = ({ isPrivate }: Setting<unknown>, text: string, isWrong: boolean): string => {
  if (isPrivate !== true) return text
  if (isWrong) return '(wrong, not shown)'
  const url = /^https?:/.test(text) && URL.canParse(text) ? new URL(text) : null
  return url === null ? text : `${url.origin}${url.pathname === '/' ? '' : '/...'}`
}

const placeOf = ({ from, option, variable, file, line }: Row): string => {
  switch (from) {
    case 'option':
      return option
    case 'environment':
      return variable ?? ''
    case 'file':
      return `${file}:${line}`
    case 'default':
      return 'default'
  }
}
