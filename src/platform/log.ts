import { pino, type Logger } from 'pino'
import { redactSecrets } from './secret-shapes.ts'

export type Log = Pick<Logger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'isLevelEnabled'> & {
  child(bindings: Record<string, unknown>): Log
}

/**
 * One JSON line an event, on standard error: standard output belongs to the command's answer.
 * Redaction looks at the finished line, so no field name has to be guessed beforehand.
 */
export const openLog = (level: string, name: string): Log =>
  pino({ name, level, base: { name } }, { write: (line: string) => void process.stderr.write(redactSecrets(line)) })

export const silentLog: Log = pino({ level: 'silent' })
