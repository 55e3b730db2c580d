// The bootstrap certificate of the image: it lets a machine through to the plane where a network asks for one. It is
// the same on many machines, so it is never an identity, and is shown only where the agent has none to show.

import { sameBytes } from '#platform/bytes.ts'
import { readFileIfAny } from '#platform/files.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem } from '#pki/pem.ts'
import type { AgentConfig } from '#agent/core/config.ts'
import type { ClientCertificate } from './verified-connection.ts'
import { trouble, type Trouble } from '#agent/core/trouble.ts'

export type BootstrapCertificate =
  | { readonly kind: 'none' }
  | { readonly kind: 'certificate'; readonly client: ClientCertificate }
  | { readonly kind: 'broken'; readonly trouble: Trouble }

/** Read again each time: an update of the image replaces these files while the agent runs. */
export const readBootstrapCertificate = ({ bootstrap }: Pick<AgentConfig, 'bootstrap'>): BootstrapCertificate => {
  if (bootstrap === null) return { kind: 'none' }
  const { certificateFile, keyFile } = bootstrap
  try {
    const certPem = readFileIfAny(certificateFile)
    const keyPem = readFileIfAny(keyFile)
    if (certPem === null || keyPem === null)
      return broken(`${certPem === null ? certificateFile : keyFile} is not there`)
    const leaf = parseCertificate(allFromPem('CERTIFICATE', certPem)?.[0] ?? new Uint8Array())
    if (leaf.kind === 'malformed') return broken(`${certificateFile} does not hold a certificate`)
    if (!sameBytes(leaf.spki, loadPrivateKey(keyPem).spki))
      return broken(`${keyFile} is not the key of ${certificateFile}`)
    return { kind: 'certificate', client: { certPem, keyPem } }
  } catch (error) {
    return broken(error instanceof Error ? error.message : `${keyFile} cannot be read`)
  }
}

const broken = (why: string): BootstrapCertificate => ({
  kind: 'broken',
  trouble: trouble(
    'static_certificate_unusable',
    `The bootstrap certificate cannot be used: ${why}.`,
    'Correct --static-certificate and --static-key, or leave both out',
  ),
})

/** The certificate to show without an identity; null: none. Without a valid one the machine calls without a certificate. */
export const bootstrapToShow = (config: Pick<AgentConfig, 'bootstrap'>): ClientCertificate | null => {
  const read = readBootstrapCertificate(config)
  return read.kind === 'certificate' ? read.client : null
}
