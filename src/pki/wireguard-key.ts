// Keys of WireGuard: X25519, as its tools write them: 32 bytes in base64.

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'

export type WireguardKeyPair = { readonly privateKey: string; readonly publicKey: string }

export const newWireguardKey = (): WireguardKeyPair => pairOf(generateKeyPairSync('x25519').privateKey)

/** What a private key of RFC 8410 has before its 32 bytes. */
const prefix = Buffer.from('302e020100300506032b656e04220420', 'hex')
const keyBytes = 32

/** Null for what is no key. */
export const wireguardKeyFrom = (privateKey: string): WireguardKeyPair | null => {
  const bytes = Buffer.from(privateKey, 'base64')
  if (bytes.length !== keyBytes || bytes.toString('base64') !== privateKey) return null
  return pairOf(createPrivateKey({ key: Buffer.concat([prefix, bytes]), format: 'der', type: 'pkcs8' }))
}

const pairOf = (key: KeyObject): WireguardKeyPair => ({
  privateKey: lastBytes(key.export({ type: 'pkcs8', format: 'der' })),
  publicKey: lastBytes(createPublicKey(key).export({ type: 'spki', format: 'der' })),
})

const lastBytes = (der: Buffer): string => der.subarray(-keyBytes).toString('base64')
