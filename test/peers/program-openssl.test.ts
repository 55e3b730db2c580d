// OpenSSL verifies the leaves of programs by the programs root and the lists that come with them, and nothing else.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { activeNode } from '../process/active-node.ts'
import type { RawNode } from '../process/raw-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

const shared = sharedPlane()

test('OpenSSL accepts a leaf with a list for every authority, refuses it once it is denied, and does not know the root of nodes', async (t) => {
  const openssl = withPeer(t, 'openssl')
  if (openssl === null) return
  const folder = tempFolder(t)
  const file = (name: string, text: string): string => {
    const at = path.join(folder, name)
    fs.writeFileSync(at, text)
    return at
  }
  const outputs = [{ name: 'web', usage: 'server', dns: ['{name}'] }]
  const set = await shared().api('PATCH', '/v1/profiles/gpu-cloud', { set: { outputs } })
  assert.equal(set.status, 200, JSON.stringify(set.body))
  const node = await activeNode(shared(), 'web-1')
  const other = await activeNode(shared(), 'web-2')
  await shared().api('POST', '/v1/nodes/web-1/names/add', { names: ['web-1.example'] })
  const asked = { csr: makeCsr(generateKey('p256'), 'x') }
  const { body } = await node.call('POST', '/v1/nodes/web-1/programs/web', asked)
  const chain = file('chain.pem', body.certificate_chain)
  const roots = file('roots.pem', body.roots.join(''))
  const listsNow = async (from: RawNode): Promise<string> => {
    const { lists } = (await from.call('GET', `/v1/nodes/${from.id()}/program-lists`)).body
    return file('crl.pem', lists.map(({ list }: { list: string }) => list).join(''))
  }
  const verified = (lists: string, trust = roots): string => {
    const checks = ['-x509_strict', '-crl_check_all', '-purpose', 'sslserver', '-verify_hostname', 'web-1.example']
    const anchors = ['-CAfile', trust, '-no-CApath', '-no-CAstore', '-untrusted', chain]
    const { stdout, stderr } = spawnSync(openssl, ['verify', ...checks, '-CRLfile', lists, ...anchors, chain], {
      encoding: 'utf8',
    })
    return stdout + stderr
  }
  assert.match(verified(await listsNow(node)), /chain\.pem: OK/)
  assert.match(verified(await listsNow(node), file('runtime.pem', node.target.roots.join(''))), /unable to get/)
  await shared().api('POST', '/v1/nodes/web-1/revoke', { reason: 'stolen' })
  assert.match(verified(await listsNow(other)), /certificate revoked/)
})
