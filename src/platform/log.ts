import { pino, type Logger } from 'pino'

export type Log = Pick<Logger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'isLevelEnabled'> & {
  child(bindings: Record<string, unknown>): Log
}

const secretShapes =
  /(?:enroll|recover|repair|muster_key)_[A-Za-z0-9_-]{43}|-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?-----END [A-Z ]*PRIVATE KEY-----/g

/** Takes every secret Muster can recognise out of a text; the log applies it to all it writes. */
export const redactSecrets = (text: string): string => text.replace(secretShapes, '[secret]')

/**
 * One JSON line an event, on standard error: standard output belongs to the command's answer.
 * Redaction looks at the finished line, so no field name has to be guessed beforehand.
 */
export const openLog = (level: string, name: string): Log =>
  pino({ name, level, base: { name } }, { write: (line: string) => void process.stderr.write(redactSecrets(line)) })

export const silentLog: Log = pino({ level: 'silent' })
