import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outputsFor, type Output } from './output.ts'
import { outputsRule } from './output-rules.ts'

const kept = (value: unknown): readonly Output[] => outputsRule.kept?.(value) as readonly Output[]
const whyNot = (value: unknown): string => {
  assert.equal(outputsRule.fits(value), false, JSON.stringify(value))
  return outputsRule.why?.(value) ?? ''
}

const nginx = { name: 'nginx', usage: 'server', dns: ['{name}', 'www.{name}'] }

test('what an operator leaves out of an output is the default', () => {
  const [output] = kept([nginx])
  assert.deepEqual(output, {
    ...nginx,
    lifetimeMs: 86_400_000,
    keyType: 'p256',
    addresses: false,
    files: {
      directory: null,
      owner: null,
      group: null,
      keyMode: 0o600,
      combined: false,
      pkcs12: false,
      reload: null,
    },
  })
  assert.equal(kept([{ ...nginx, files: { keyMode: '0640' } }])[0]?.files.keyMode, 0o640)
  assert.deepEqual(kept(kept([nginx])), kept([nginx]), 'what is shown can be set again')
})

test('the built-in issuer is left out, as rows of before have it', () => {
  assert.equal('issuer' in (kept([{ name: 'a', issuer: 'built-in' }])[0] ?? {}), false)
  assert.equal(kept([{ name: 'a', issuer: 'corp' }])[0]?.issuer, 'corp')
  assert.match(whyNot([{ name: 'a', issuer: 'Corp' }]), /issuer takes built-in, or the name/)
})

test('what could not work, or would take more than is meant, is refused and named', () => {
  assert.match(whyNot('nginx'), /at most 16/)
  assert.match(whyNot(Array.from({ length: 17 }, (_, at) => ({ name: `p${at}` }))), /at most 16/)
  assert.match(whyNot([{ name: 'Nginx' }]), /lower-case/)
  assert.match(whyNot([{ name: '../x' }]), /lower-case/)
  assert.match(whyNot([nginx, nginx]), /nginx twice/)
  assert.match(whyNot([{ ...nginx, dns: [], addresses: false }]), /need dns or addresses/)
  assert.match(whyNot([{ ...nginx, shell: 'rm' }]), /have no shell/)
  assert.match(whyNot([{ ...nginx, lifetimeMs: 1 }]), /lifetimeMs takes/)
  assert.match(whyNot([{ ...nginx, files: { keyMode: '0644' } }]), /keyMode takes/)
  assert.match(whyNot([{ ...nginx, files: { directory: '/etc/../root' } }]), /directory takes/)
  assert.match(whyNot([{ ...nginx, files: { reload: 'nginx; reboot' } }]), /reload takes/)
})

test('a template has {name} once and nothing else to fill in, and no wildcard', () => {
  for (const template of [
    'db.example',
    '*.{name}',
    '{id}.{name}',
    '{name}.{name}',
    'a..{name}',
    'DB.{name}',
    '{name}x',
    '',
  ])
    assert.match(whyNot([{ ...nginx, dns: [template] }]), /dns takes/, template)
  for (const template of ['{name}', 'db.{name}', '{name}.svc', 'a.b.{name}.c'])
    assert.equal(outputsRule.fits([{ ...nginx, dns: [template] }]), true, template)
})

test("a vCluster's output replaces the profile's of the same name", () => {
  const [ofProfile, other] = kept([nginx, { name: 'etcd' }])
  const [ofVCluster] = kept([{ ...nginx, lifetimeMs: 3_600_000 }])
  const profile = { outputs: [ofProfile as Output, other as Output] }
  assert.deepEqual(outputsFor(profile, null), profile.outputs)
  assert.deepEqual(outputsFor(profile, { outputs: [ofVCluster as Output] }), [ofVCluster, other])
})
