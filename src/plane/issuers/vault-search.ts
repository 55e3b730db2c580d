// A certificate that Vault has signed and that nobody got: looked for once, among the serials that are not on record. What Vault has is not ordered
// by time, so the search has bounds and may end without an answer.

import { colonSerial, serialOfColons } from '#domain/issuers/serial.ts'
import { spkiHash } from '#pki/spki.ts'
import { IssuerFault, mostBytesOfList } from '#plane/outside/issuer-client.ts'
import { certificateIn, textsOf, VaultFault } from '#plane/outside/vault-reply.ts'
import type { VaultPki } from './vault-pki.ts'

const mostSerials = 100_000
const mostRead = 256

/** `spki`: SHA-256 of the key, hex. Null: it is not there, or it was not looked for any further. */
export const searchVault = async (
  { vault, mount }: Pick<VaultPki, 'vault' | 'mount'>,
  spki: string,
  known: (serial: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<string | null> => {
  const serials = await listed({ vault, mount }, signal)
  if (serials === null) return null
  let read = 0
  for (const serial of serials) {
    if (await known(serial)) continue
    if (read === mostRead) return null
    read++
    const certificate = certificateIn(
      await vault.ask({ method: 'GET', path: `${mount}/cert/${colonSerial(serial)}` }, signal),
    )
    // Certificates of others may be of a kind that we do not read.
    if (certificate?.serial !== serial) continue
    if (spkiHash(certificate.spki) === spki) return serial
  }
  return null
}

const listed = async (
  { vault, mount }: Pick<VaultPki, 'vault' | 'mount'>,
  signal: AbortSignal,
): Promise<readonly string[] | null> => {
  const path = `${mount}/certs`
  try {
    const { status, data, said } = await vault.ask({ method: 'LIST', path, mostBytes: mostBytesOfList }, signal)
    if (status === 404) return []
    if (status === 403) return null
    if (status !== 200) throw new VaultFault('broken', `${path}: ${said}`, true)
    const serials = textsOf(data?.['keys'])
    if (serials.length > mostSerials) return null
    return serials.map(serialOfColons).filter((serial) => serial !== null)
  } catch (error) {
    if (error instanceof IssuerFault && error.code === 'too-long') return null
    throw error
  }
}
