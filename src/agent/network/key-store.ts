// The key of this node in the WireGuard network: made here, kept here, and never sent.

import * as path from 'node:path'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { newWireguardKey, wireguardKeyFrom, type WireguardKeyPair } from '#pki/wireguard-key.ts'
import { attempt, type Kept } from '#agent/state/identity-keeper.ts'

export type WireguardKeyStore = {
  /** Null: none was made, or the one there was is damaged. */
  current(): WireguardKeyPair | null
  /** The one there is, or a new one. Durable, where keys go to disk; a key that could not be written is not in force. */
  ensure(): { readonly kind: 'key'; readonly key: WireguardKeyPair } | Extract<Kept, { persisted: false }>
  /** From now on in memory only. */
  leaveDisk(): Kept
  /** Afterwards there is none, neither here nor on the disk. */
  erase(): Kept
}

/** `write`: how what must not be lost is written. */
export const openWireguardKey = (
  stateFolder: string,
  onDisk: boolean,
  write: (act: () => void) => void,
): WireguardKeyStore => {
  const file = path.join(stateFolder, 'wireguard.key')
  let key = onDisk ? readKey(file) : null
  const eraseFile = (): Kept =>
    attempt(() => {
      if (readFileIfAny(file) === null && readFileIfAny(`${file}.new`) === null) return
      removeFile(`${file}.new`)
      removeFile(file)
    })
  return {
    current: () => key,
    ensure: () => {
      if (key !== null) return { kind: 'key', key }
      const made = newWireguardKey()
      const kept = attempt(() => {
        if (!onDisk) return
        makeFolder(stateFolder, 0o700)
        write(() => replaceFile(file, `${made.privateKey}\n`, 0o600))
      })
      if (!kept.persisted) return kept
      key = made
      return { kind: 'key', key }
    },
    leaveDisk: eraseFile,
    erase: () => {
      key = null
      return eraseFile()
    },
  }
}

const readKey = (file: string): WireguardKeyPair | null => {
  try {
    return wireguardKeyFrom((readFileIfAny(file) ?? '').trim())
  } catch {
    return null
  }
}
