// The host of keys in Transit, by a fake Vault: its files are put right while the plane runs, in whatever order.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { openTransitHost } from '#plane/keys/transit-host.ts'
import { TransitUnavailable } from '#plane/keys/key-unavailable.ts'
import { systemTimers } from '#platform/timers.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { cleanup } from '../process/cleanup.ts'
import { localServerIdentity, startLocalTlsServer } from '../process/local-tls-server.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** Takes one secret ID, and the login that was made with it. */
const fakeVault = async (t: TestContext) => {
  const { target, server, port } = await startLocalTlsServer(t)
  let secret = 'first'
  server.on('request', (request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    void text(request).then((said) => {
      if (request.url === '/v1/auth/approle/login')
        return (JSON.parse(said) as { secret_id: string }).secret_id === secret
          ? answer(200, { auth: { client_token: `token-of-${secret}`, lease_duration: 3600, renewable: true } })
          : answer(400, { errors: ['invalid secret id'] })
      return request.headers['x-vault-token'] === `token-of-${secret}`
        ? answer(200, { data: { there: true } })
        : answer(403, { errors: ['permission denied', 'invalid token'] })
    })
  })
  const folder = tempFolder(t)
  const [rootsFile, secretFile] = [path.join(folder, 'roots.pem'), path.join(folder, 'secret')]
  const write = (file: string, content: string): void => fs.writeFileSync(file, content, { mode: 0o600 })
  write(rootsFile, target.roots.join(''))
  write(secretFile, secret)
  const clock = manualClock(Date.now())
  const login = { kind: 'approle', roleId: 'role', mount: 'approle' } as const
  const address = `https://127.0.0.1:${port}`
  const places = { address, rootsFile, login, secretFile, mount: 'transit', credentialsFolder: null }
  const host = openTransitHost({ clock, timers: systemTimers }, places)
  cleanup(t, () => host.close())
  return {
    ...{ rootsFile, secretFile, write, roots: target.roots.join('') },
    takes: (next: string) => void (secret = next),
    ask: async () => {
      // What has failed is left alone for a while.
      clock.advance(60_000)
      const { status } = await host.ask({ method: 'GET', path: 'transit/keys/k' }, new AbortController().signal)
      return status
    },
  }
}

test('roots that were wrong at the first login are read again once they are put right', async (t) => {
  const vault = await fakeVault(t)
  vault.write(vault.rootsFile, localServerIdentity().chainPem)
  await assert.rejects(vault.ask(), /does not hang under a pinned root/)
  await assert.rejects(vault.ask(), /does not hang under a pinned root/)
  vault.write(vault.rootsFile, vault.roots)
  assert.equal(await vault.ask(), 200)
})

test('a secret that is half written when the login is refused costs one attempt, and not the connection for good', async (t) => {
  const vault = await fakeVault(t)
  assert.equal(await vault.ask(), 200)
  vault.takes('second')
  vault.write(vault.secretFile, 'two words')
  await assert.rejects(vault.ask(), (error: unknown) => {
    return error instanceof TransitUnavailable && error.trouble === 'settings'
  })
  // Vault takes the one that was there again.
  vault.takes('first')
  vault.write(vault.secretFile, 'first')
  assert.equal(await vault.ask(), 200)
  vault.takes('second')
  vault.write(vault.secretFile, 'second')
  assert.equal(await vault.ask(), 200)
})
