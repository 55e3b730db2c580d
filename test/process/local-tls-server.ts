// A TLS server of the test's own, with a certificate of its own: for what does not need a plane.

import * as https from 'node:https'
import type { AddressInfo } from 'node:net'
import { constants } from 'node:crypto'
import { buildCertificate } from '#pki/certificate.ts'
import { generateKey } from '#pki/keys.ts'
import { keyId } from '#pki/spki.ts'
import { toPem } from '#pki/pem.ts'
import { cleanup, type Scope } from './cleanup.ts'
import type { NodeTarget } from './node-call.ts'

export type LocalTlsServer = { readonly target: NodeTarget; readonly port: number; readonly server: https.Server }

/** A server certificate for localhost that trusts itself. */
export const localServerIdentity = (): { readonly keyPem: string; readonly chainPem: string } => {
  const key = generateKey('p256')
  const name = { cn: 'localhost', o: null, ou: null }
  const nowMs = Date.now()
  const certificate = buildCertificate(
    {
      serial: Buffer.from('01', 'hex'),
      subject: name,
      issuer: name,
      notBeforeMs: nowMs - 60_000,
      notAfterMs: nowMs + 3600_000,
      spki: key.spki,
      extensions: {
        ca: null,
        keyUsage: ['digitalSignature'],
        extendedKeyUsage: ['serverAuth'],
        uris: [],
        dnsNames: ['localhost'],
        ips: ['127.0.0.1'],
        authorityKeyId: keyId(key.spki),
        aiaUrl: null,
        cdpUrl: null,
      },
    },
    key,
  )
  return { keyPem: key.pkcs8Pem(), chainPem: toPem('CERTIFICATE', certificate) }
}

/** Without tickets, as the plane's listeners are, unless `options` say otherwise. */
export const startLocalTlsServer = async (t: Scope, options: https.ServerOptions = {}): Promise<LocalTlsServer> => {
  const { keyPem, chainPem: pem } = localServerIdentity()
  const server = https.createServer({
    key: keyPem,
    cert: pem,
    minVersion: 'TLSv1.3',
    secureOptions: constants.SSL_OP_NO_TICKET,
    ...options,
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup(t, async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { target: { url: `https://127.0.0.1:${port}`, roots: [pem] }, port, server }
}
