// The worker-issuer commands against a real operator listener: what they print, and what they refuse.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { generateKey } from '#pki/keys.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { setUpCli } from './cli-setup.ts'

const trust = ['--iss', 'https://cluster.east', '--aud', 'muster', '--sub', 'deploy']

test('where its keys come from is checked before the plane is asked, and what is wrong is said of the options', async (t) => {
  const { musterWith } = await setUpCli(t)
  const home = tempFolder(t)
  const fileOf = (name: string, content: string): string => {
    fs.writeFileSync(path.join(home, name), content)
    return path.join(home, name)
  }
  const pem = fileOf('key.pem', generateKey('ed25519').pkcs8Pem())
  const list = fileOf('list.json', '[]')
  const none = fileOf('none.json', '{"keys":[]}')
  const good = fileOf('good.json', cluster().jwks())
  const url = ['--jwks-url', 'https://cluster.east/openid/v1/jwks']
  const unasked = (): never => assert.fail('the plane was asked')
  for (const [options, expected] of [
    [[], 'Where are its keys? Either --jwks-file, or --jwks-url together with --jwks-ca.'],
    [url, '--jwks-url and --jwks-ca go together.'],
    [['--jwks-ca', pem], '--jwks-url and --jwks-ca go together.'],
    [['--jwks-file', good, ...url, '--jwks-ca', pem], 'Either --jwks-file or --jwks-url.'],
    [['--jwks-file', pem], `--jwks-file ${pem} is no JSON Web Key Set: not JSON.`],
    [['--jwks-file', list], `--jwks-file ${list} is no JSON Web Key Set: it has no list "keys".`],
    [['--jwks-file', none], `--jwks-file ${none} has no key for RS256 or ES256 with an id (kid).`],
    [[...url, '--jwks-ca', pem], `--jwks-ca ${pem} holds something that is no certificate in PEM.`],
  ] as const) {
    const said = await musterWith({ openHttp: unasked }, 'worker-issuer', 'add', 'east', ...trust, ...options)
    assert.equal(said.code, exitCodes.usage, said.err)
    assert.ok(said.err.startsWith(`error USAGE: ${expected}\n`), said.err)
  }
  const set = await musterWith({ openHttp: unasked }, 'worker-issuer', 'set', 'east', '--jwks-file', pem)
  assert.ok(set.err.startsWith(`error USAGE: --jwks-file ${pem} is no JSON Web Key Set`), set.err)
  const added = await musterWith({}, 'worker-issuer', 'add', 'east', ...trust, '--jwks-file', good)
  assert.equal(added.code, exitCodes.ok, added.err)
  const changed = await musterWith({}, 'worker-issuer', 'set', 'east', '--aud', 'other')
  assert.match(changed.out, /^audience +other$/m)
})

test('a type of task that there is not is refused, and a vCluster that is still to come is not', async (t) => {
  const { muster, musterWith } = await setUpCli(t)
  const add = (types: string) => {
    const keys = { input: cluster().jwks() }
    const rights = ['--types', types, '--vclusters', 'to-come']
    return musterWith(keys, 'worker-issuer', 'add', 'east', ...trust, '--jwks-file', '-', ...rights)
  }
  const refused = await add('run,nonsense')
  assert.equal(refused.code, exitCodes.refused, refused.err)
  assert.match(refused.err, /types: "nonsense" is no type of task; there are run, service, .* x-/)
  const added = await add('run,x-led')
  assert.equal(added.code, exitCodes.ok, added.err)
  assert.match(added.out, /^vclusters +to-come$/m)
  const set = await muster('worker-issuer', 'set', 'east', '--types', 'nonsense')
  assert.match(set.err, /types: "nonsense" is no type of task/)
})

test('an issuer that is removed is said to be removed, and programs get it as before', async (t) => {
  const { muster, musterWith } = await setUpCli(t)
  for (const name of ['east', 'west']) {
    const subject = ['--iss', 'https://cluster.east', '--aud', 'muster', '--sub', name]
    const added = await musterWith(
      { input: cluster().jwks() },
      ...['worker-issuer', 'add', name, ...subject, '--jwks-file', '-'],
    )
    assert.equal(added.code, exitCodes.ok, added.err)
  }
  const removed = await muster('worker-issuer', 'remove', 'east')
  assert.equal(removed.out, 'worker issuer east removed; its workers are refused from now on\n', removed.err)
  const asJson = JSON.parse((await muster('worker-issuer', 'remove', 'west', '-o', 'json')).out)
  assert.deepEqual([asJson.name, asJson.sub], ['west', 'west'])
  assert.doesNotMatch((await muster('worker-issuer', 'list')).out, /east|west/)
})
