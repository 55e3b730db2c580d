// The settings of the log, the same for every process of Muster.

import { logFormats } from './log-text.ts'
import { choiceSetting } from './setting.ts'

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

export const logSettings = {
  logLevel: choiceSetting(logLevels, 'info', {
    value: 'level',
    variable: 'MUSTER_LOG_LEVEL',
    meaning: 'Least level that is logged',
    change: 'To `debug` while you look for a fault.',
  }),
  log: choiceSetting(logFormats, 'auto', {
    value: 'format',
    variable: 'MUSTER_LOG',
    meaning: 'How the log is written: `auto` is text on a terminal and JSON elsewhere',
    change:
      'To `json` where a program reads what a terminal shows, to `text` where a person reads what a pipe carries.',
  }),
} as const
