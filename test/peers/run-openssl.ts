// OpenSSL's command line, for tests that have asked for the peer.

import { spawnSync } from 'node:child_process'
import { peer } from './peer.ts'

export type OpensslSaid = { readonly status: number | null; readonly text: string }

/** `text`: what it said, on either stream. */
export const runOpenssl = (args: readonly string[], input: string | Buffer = ''): OpensslSaid => {
  const found = peer('openssl')
  if ('missing' in found) throw new Error(found.missing)
  const { status, stdout, stderr } = spawnSync(found.path, args, { input, encoding: 'utf8' })
  return { status, text: stdout + stderr }
}
