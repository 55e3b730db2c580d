// The PIN of a token: from a file, from a folder with a file for each token, or from a systemd credential. It is read each time that
// a token is logged in to, so that a new one is found without a restart.

import * as path from 'node:path'
import { othersMayRead, readShortFile } from '#platform/files.ts'
import { isFolder } from '#platform/paths.ts'
import { Pkcs11Unavailable } from '#platform/pkcs11.ts'

export type PinPlaces = {
  /** `--pkcs11-pin`: a file, or a folder in which each file is named after the label of a token; null: none was named. */
  readonly pin: string | null
  /** systemd's $CREDENTIALS_DIRECTORY, or null. */
  readonly credentialsFolder: string | null
}

const credentialName = 'muster-pkcs11-pin'
/** PKCS#11 sets no bound; tokens take 4 to 32 characters. */
const longestPin = 256

/** Throws `Pkcs11Unavailable`, which names the file and nothing of what is in it. */
export const pinOf = ({ pin, credentialsFolder }: PinPlaces, token: string): string => {
  if (pin === null) {
    if (credentialsFolder === null)
      throw noPin(
        token,
        'none was named',
        `Name its file: --pkcs11-pin FILE, or hand over the credential ${credentialName}`,
      )
    return readPin(token, path.join(credentialsFolder, credentialName))
  }
  const file = isFolder(pin) ? path.join(pin, fileNameOf(token)) : pin
  if (othersCanRead(file)) throw noPin(token, `others may read ${file}`, `chmod 600 ${file}`)
  return readPin(token, file)
}

const othersCanRead = (file: string): boolean => {
  try {
    return othersMayRead(file)
  } catch {
    // What is wrong with it is said by who reads it.
    return false
  }
}

/** A label may be anything. */
const fileNameOf = (token: string): string => {
  if (/^[\w][\w .-]*$/.test(token)) return token
  throw noPin(token, 'its label is no name for a file', 'Name the file itself: --pkcs11-pin FILE')
}

const readPin = (token: string, file: string): string => {
  const read = readShort(token, file)
  if (read === null) throw noPin(token, `there is no file ${file}`, 'Put the PIN there, in one line')
  if (read === 'too-long') throw noPin(token, `${file} is longer than a PIN`, 'Put the PIN there, in one line')
  const pin = read.text.replace(/\r?\n$/, '')
  if (pin === '' || pin.includes('\n')) throw noPin(token, `${file} is not one line`, 'Put the PIN there, in one line')
  return pin
}

const readShort = (token: string, file: string) => {
  try {
    return readShortFile(file, longestPin)
  } catch (error) {
    throw noPin(token, error instanceof Error ? error.message : String(error), `Let the plane read ${file}`)
  }
}

const noPin = (token: string, why: string, next: string): Pkcs11Unavailable =>
  new Pkcs11Unavailable('pin', `there is no PIN for the token ${token}: ${why}`, next)
