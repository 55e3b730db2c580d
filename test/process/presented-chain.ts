// What the plane shows in a handshake, as OpenSSL saw it: without judging it, since the clock of the plane may be another.

import { spawn } from 'node:child_process'
import { within } from './eventually.ts'
import type { NodeTarget } from './node-call.ts'

/** PEM, leaf first, the root included where it is sent. */
export const presentedChain = (openssl: string, target: NodeTarget): Promise<readonly string[]> => {
  const { hostname, port } = new URL(target.url)
  const args = ['s_client', '-connect', `${hostname}:${port}`, '-servername', hostname, '-showcerts']
  const client = spawn(openssl, args, { stdio: ['pipe', 'pipe', 'ignore'] })
  const chain = new Promise<readonly string[]>((resolve, reject) => {
    client.stdin.on('error', () => {})
    client.stdin.end()
    let printed = ''
    client.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
    client.once('error', reject)
    client.once('close', () => {
      const chain = printed.match(/-----BEGIN CERTIFICATE-----[^]+?-----END CERTIFICATE-----\n/g) ?? []
      // The leaf is printed once more behind the chain.
      resolve([...new Set(chain)])
    })
  })
  return within('OpenSSL to show the chain', 10_000, chain).finally(() => client.kill())
}
