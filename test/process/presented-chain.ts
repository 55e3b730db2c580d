// What the plane shows in a handshake, without judging it.

import * as tls from 'node:tls'
import { tlsOptions, type NodeTarget } from './node-call.ts'

/** DER, leaf first, the root included where it is sent. */
export const presentedChain = (target: NodeTarget): Promise<readonly Buffer[]> =>
  new Promise((resolve, reject) => {
    // The clock of this process is not that of the plane: whoever asks judges the chain at the plane's time.
    const socket = tls.connect({ ...tlsOptions(target, null), rejectUnauthorized: false, timeout: 10_000 })
    socket.once('error', reject)
    socket.once('timeout', () => socket.destroy(new Error('no handshake in time')))
    socket.once('secureConnect', () => {
      resolve(chainFrom(socket.getPeerCertificate(true)))
      socket.destroy()
    })
  })

const chainFrom = (leaf: tls.DetailedPeerCertificate): readonly Buffer[] => {
  const chain: Buffer[] = []
  // A self-signed root names itself as its issuer.
  for (let at = leaf; !chain.some((der) => der.equals(at.raw)); at = at.issuerCertificate) chain.push(at.raw)
  return chain
}
