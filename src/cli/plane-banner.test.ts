import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planeBanner } from './plane-banner.ts'

const ready = {
  nodeUrl: 'https://localhost:8443',
  recoveryUrl: 'https://localhost:8442',
  operatorUrl: 'http://127.0.0.1:8440',
  socketPath: './data/run/operator.sock',
  rootFingerprint: 'ab'.repeat(32),
  domain: 'muster.local',
  dataFolder: "/srv/it's",
  firstRun: true,
  warnings: ['the sealing key lies beside what it seals'],
}

test('the banner has the addresses, the root and commands that enrol a first node', () => {
  const text = planeBanner(ready, './muster', true).join('\n')
  const addresses = [ready.nodeUrl, ready.recoveryUrl, ready.operatorUrl]
  for (const part of [...addresses, `sha256:${ready.rootFingerprint}`, ...ready.warnings]) {
    assert.ok(text.includes(part), part)
  }
  assert.match(text, /\.\/muster token create --node gpu-001 \| \.\/muster agent run --state \.\/n1 --join-file -/)
  assert.doesNotMatch(text, /MUSTER_DATA/)
})

test('for another data folder it says how commands find it', () => {
  assert.ok(planeBanner(ready, 'muster', false).includes(`    export MUSTER_DATA='/srv/it'\\''s'`))
})
