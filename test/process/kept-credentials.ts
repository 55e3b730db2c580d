// What an agent has kept, read behind its back and judged without its own code: a key stands beside its own certificate,
// and a request is for the key it was made with.

import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, X509Certificate, type KeyObject } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { fileCredentialStore } from '#agent/state/credential-store.ts'
import type { Credentials, Identity } from '#agent/state/credentials.ts'
import { parseCsr } from '#pki/csr.ts'
import { sha256Hex } from '#platform/bytes.ts'

/** Null: the folder has no credentials yet. Fails for a file that does not parse, and for a key without its certificate. */
export const keptCredentials = (state: string): Credentials | null => {
  if (!fs.existsSync(path.join(state, 'identity.json'))) return null
  const kept = fileCredentialStore(state).load()
  const generations = kept.identity === null ? [] : [kept.identity.current, kept.identity.previous]
  for (const generation of generations) {
    if (generation === null) continue
    const certificate = new X509Certificate(generation.chainPem)
    assert.equal(spkiOf(certificate.publicKey), keyHash(generation.keyPem), 'a key stands beside another certificate')
    assert.equal(BigInt(`0x${certificate.serialNumber}`), BigInt(`0x${generation.serial}`))
  }
  if (kept.request !== null) {
    const csr = parseCsr(kept.request.csrPem)
    assert.ok(csr.kind === 'csr', 'the request that was kept is malformed')
    assert.equal(sha256Hex(csr.spki), keyHash(kept.request.keyPem), 'a request is for another key than its own')
  }
  return kept
}

export const keptIdentity = (state: string): Identity =>
  keptCredentials(state)?.identity ?? assert.fail(`there is no identity in ${state}`)

/** As the plane writes it down: SHA-256 of the public key. */
export const keyHash = (keyPem: string): string => spkiOf(createPublicKey(createPrivateKey(keyPem)))

const spkiOf = (key: KeyObject): string => sha256Hex(key.export({ format: 'der', type: 'spki' }))
