// The last lines that a service or a check wrote, fit to be shown elsewhere: few, short, printable, and without secrets. All functions here are pure.

import { tidy } from '#agent/core/trouble.ts'
import { redactSecrets } from '#platform/secret-shapes.ts'

export const mostLines = 5
export const longestLine = 200
/** How much of a log is read for them. */
export const readBytes = 16 * 1024

/** Part of a key whose first line was not read, or a token. A path has more slashes, a hash no capitals. */
const encoded = /[A-Za-z0-9+/_-]{40,}={0,2}/g

const withoutEncoded = (line: string): string =>
  line.replace(encoded, (word) => {
    const isMixed = /[a-z]/.test(word) && /[A-Z]/.test(word) && /[0-9]/.test(word)
    return isMixed && word.split('/').length < word.length / 12 ? '[secret]' : word
  })

const secretName = /(TOKEN|PASSW|SECRET|KEY|CREDENTIAL)/i

/** `environment`: what the program was given; values under names of secrets are taken out wherever they appear. */
export const lastLines = (text: string, environment: Readonly<Record<string, string>> = {}): readonly string[] => {
  const secrets = Object.entries(environment)
    .filter(([name, value]) => secretName.test(name) && value.length >= 4)
    .map(([, value]) => value)
  const hidden = secrets.reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), redactSecrets(text))
  return hidden
    .split('\n')
    .map((line) => tidy(withoutEncoded(line), longestLine))
    .filter((line) => line !== '')
    .slice(-mostLines)
}

/** What a check says: its first line. */
export const firstLine = (text: string, environment: Readonly<Record<string, string>> = {}): string | null => {
  const line = text.split('\n').find((one) => one.trim() !== '')
  return line === undefined ? null : (lastLines(line, environment)[0] ?? null)
}
