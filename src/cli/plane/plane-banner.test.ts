import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usualPlaneFile as fileOfCommands } from '#cli/kit/connection.ts'
import { usualPlaneFile } from '#plane/config/settings.ts'
import { isDefaultData, planeBanner, planeReadyBody } from './plane-banner.ts'

const ready = {
  nodeUrl: 'https://localhost:8443',
  recoveryUrl: 'https://localhost:8442',
  operatorUrl: 'http://127.0.0.1:8440',
  statusUrl: 'http://127.0.0.1:8446',
  socketPath: './data/run/operator.sock',
  rootFingerprint: 'ab'.repeat(32),
  domain: 'muster.local',
  dataFolder: "/srv/it's",
  firstRun: true,
  adminKeyHere: true,
  warnings: ['the sealing key lies beside what it seals'],
}

const alone = { isDefault: true, shared: false, file: null }

test('the banner has the addresses, the root and commands that enroll a first node', () => {
  const text = planeBanner(planeReadyBody(ready), './muster', alone).join('\n')
  const addresses = [ready.nodeUrl, ready.recoveryUrl, ready.operatorUrl, ready.statusUrl]
  for (const part of [...addresses, `sha256:${ready.rootFingerprint}`, ...ready.warnings]) {
    assert.ok(text.includes(part), part)
  }
  assert.match(text, /\.\/muster token create --node gpu-001 \| \.\/muster agent run --state \.\/n1 --join-file -/)
  assert.doesNotMatch(text, /MUSTER_DATA/)
})

test('a plane that has run before tells nobody to enroll a first node', () => {
  const text = planeBanner(planeReadyBody({ ...ready, firstRun: false }), './muster', alone).join('\n')
  assert.doesNotMatch(text, /first node|gpu-001/)
  assert.match(text, /\.\/muster node list/)
})

test('a plane that is called localhost says how another machine reaches it; one with a name does not', () => {
  const local = planeBanner(planeReadyBody(ready), './muster', alone).join('\n')
  assert.match(local, /No other machine can use https:\/\/localhost:8443/)
  assert.match(local, /\.\/muster plane --node-listen 0\.0\.0\.0:8443 --server-name NAME/)
  const elsewhere = planeReadyBody({ ...ready, nodeUrl: 'https://localhost:18443' })
  assert.match(
    planeBanner(elsewhere, './muster', alone).join('\n'),
    /--node-listen 0\.0\.0\.0:18443 --server-name NAME/,
  )
  const named = planeReadyBody({ ...ready, nodeUrl: 'https://plane.example:8443' })
  assert.doesNotMatch(planeBanner(named, './muster', alone).join('\n'), /No other machine/)
})

test('a plane that is set up by a file names it, and what to write into it', () => {
  const file = '/etc/muster/plane.toml'
  const text = planeBanner(planeReadyBody(ready), 'muster', { ...alone, file }).join('\n')
  assert.match(text, /^settings +\/etc\/muster\/plane\.toml\n/)
  assert.match(
    text,
    /in \/etc\/muster\/plane\.toml:\n\n {4}node_listen = "0\.0\.0\.0:8443"\n {4}server_name = \["NAME"\]\n/,
  )
})

test('for another data folder it says how commands find it', () => {
  const lines = planeBanner(planeReadyBody(ready), 'muster', { isDefault: false, shared: false, file: null })
  assert.ok(lines.includes(`    export MUSTER_DATA='/srv/it'\\''s'`))
  const again = `    muster plane --data '/srv/it'\\''s' --node-listen 0.0.0.0:8443 --server-name NAME`
  assert.ok(lines.includes(again), 'it is started again where no variable is set')
})

test('a plane that found its domain made says where the key of the administrator is', () => {
  const other = planeReadyBody({ ...ready, firstRun: false, adminKeyHere: false, socketPath: '' })
  const text = planeBanner(other, 'muster', { isDefault: true, shared: true, file: null }).join('\n')
  assert.match(text, /made by another plane/)
  assert.match(text, /MUSTER_KEY_FILE/)
  assert.match(text, /operators +http:\/\/127\.0\.0\.1:8440\n/)
})

test('a plane on SQLite whose admin.key is gone says so, and blames no other plane', () => {
  const body = planeReadyBody({ ...ready, firstRun: false, adminKeyHere: false })
  const text = planeBanner(body, 'muster', alone).join('\n')
  assert.match(text, /admin\.key is not in this folder: put it back from a backup, or use another .*--key-file FILE/)
  assert.doesNotMatch(text, /another plane/)
})

test('commands look for the data folder in the file that a plane reads', () => {
  assert.equal(fileOfCommands, usualPlaneFile)
  const data = (file: string) =>
    isDefaultData({ value: '/srv', texts: ['/srv'], label: '', source: { from: 'file', file, line: 1 } })
  assert.ok(data(usualPlaneFile))
  assert.ok(!data('/elsewhere/plane.toml'))
})
