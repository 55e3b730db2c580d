import { pino, type Logger } from 'pino'
import { openLogText, type LogFormat } from './log-text.ts'
import { redactSecrets } from './secret-shapes.ts'

export type Log = Pick<Logger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'isLevelEnabled'> & {
  child(bindings: Record<string, unknown>): Log
}

export type LogOptions = { readonly logLevel: string; readonly logFormat: LogFormat }

/**
 * One line an event, on standard error: standard output belongs to the command's answer.
 * Redaction looks at the finished line, so no field name has to be guessed beforehand.
 */
export const openLog = ({ logLevel, logFormat }: LogOptions, name: string): Log => {
  const isTerminal = Boolean(process.stderr.isTTY)
  const isText = logFormat === 'text' || (logFormat === 'auto' && isTerminal)
  const { NO_COLOR: noColour = '', TERM: terminal } = process.env
  const asText = isText ? openLogText(isTerminal && noColour === '' && terminal !== 'dumb') : null
  const write = (line: string): void => {
    const redacted = redactSecrets(line)
    // Once more: a secret that was taken apart by the escapes of JSON is whole in the text.
    process.stderr.write(asText === null ? redacted : redactSecrets(asText(redacted)))
  }
  return pino({ name, level: logLevel, base: { name } }, { write })
}

export const silentLog: Log = pino({ level: 'silent' })
