import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyLine, vaultWrite } from './vault-line.ts'

test('values are written as the command line of Vault takes them, and quoted where a shell would read them', () => {
  const line = vaultWrite('pki/roles/node', {
    ou: ['a', 'b'],
    ttl: 60,
    server_flag: false,
    key_usage: [],
    allowed_uri_sans: ['spiffe://a.example/node/*'],
    organization: ["Anna's"],
  })
  assert.equal(
    line,
    "vault write pki/roles/node ou=a,b ttl=60 server_flag=false key_usage= 'allowed_uri_sans=spiffe://a.example/node/*' " +
      String.raw`'organization=Anna'\''s'`,
  )
})

test('what that cannot say goes in as JSON: a comma within a value, and what would be taken for a file', () => {
  for (const value of [['Example, Inc.'], '@file', ['@file'], '-', ['a\nb'], [' a'], ['']]) {
    const [command, json, end, ...rest] = vaultWrite('pki/roles/node', { ou: value }).split('\n')
    assert.deepEqual([command, end, rest], ["vault write pki/roles/node - <<'END'", 'END', []])
    assert.deepEqual(JSON.parse(json ?? ''), { ou: value })
  }
})

test('a path of a policy is quoted', () => {
  assert.equal(policyLine('pki/sign/node', 'update'), 'path "pki/sign/node" { capabilities = ["update"] }')
})
