// The environment of a unit, in a file that only its owner and systemd can read. What is set on a command line, or as a property of
// a unit, every user of the machine can read.

import { replaceFile } from './files.ts'

/** Throws where systemd would leave a variable out without a word. */
export const writeEnvironmentFile = (file: string, env: Readonly<Record<string, string>>): void =>
  replaceFile(file, environmentText(env), 0o600)

/** As systemd reads it (systemd.exec, EnvironmentFile=). */
export const environmentText = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .map(([name, value]) => `${name}="${quoted(name, value)}"\n`)
    .join('')

const quoted = (name: string, value: string): string => {
  if (/[\p{Cc}--[\t\n]]/v.test(value))
    throw new Error(`variable ${name} has a control character, which systemd does not take`)
  return value.replace(/["\\`$]/g, '\\$&')
}
