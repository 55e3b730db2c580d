import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cli } from '#cli/kit/cli.ts'
import { requestFrom, type Access, type IssuerOptions } from './issuer-options.ts'

const cli = { env: {} } as unknown as Cli
const given = (options: object): IssuerOptions => ({ output: 'table', ...options })

const vault: Access = {
  step_ca: null,
  vault: {
    ...{ mount: 'pki', namespace: 'team', auth: 'approle', auth_mount: 'machines', role_id: 'r1' },
    roles: [
      { profile: 'gpu-cloud', role: 'gpu' },
      { profile: 'output:web', role: 'old' },
    ],
  },
}

test('a part of the access to an issuer takes the rest of it from what is there', async () => {
  const set = (options: object, now: Access = vault) => requestFrom(cli, given(options), () => Promise.resolve(now))
  const { roles: before } = vault.vault ?? assert.fail()
  const roles = [
    { profile: 'gpu-cloud', role: 'gpu' },
    { profile: 'output:web', role: 'web' },
    { profile: 'worker:*', role: 'workers' },
  ]
  assert.deepEqual(await set({ role: ['output:web=web', 'worker:*=workers'] }), { vault: { ...vault.vault, roles } })
  const [, ...web] = before
  assert.deepEqual((await set({ role: ['gpu-cloud='] })).vault?.roles, web)
  assert.deepEqual(await set({ mount: 'other' }), { vault: { ...vault.vault, mount: 'other' } })
  // Another way to log in has nothing of the one before.
  assert.deepEqual(await set({ auth: 'token' }), {
    vault: { mount: 'pki', namespace: 'team', auth: 'token', roles: before },
  })
  const stepCa = { step_ca: { provisioner: 'muster', renewal_provisioner: 'renewals' }, vault: null }
  assert.deepEqual(await set({ provisioner: 'other' }, stepCa), {
    step_ca: { provisioner: 'other', renewal_provisioner: 'renewals' },
  })
})

test('what is there is asked for only where a part of the access is given', async () => {
  const asked = () => assert.fail('it was asked for')
  assert.deepEqual(await requestFrom(cli, given({ at: 'https://ca.example' }), asked), { url: 'https://ca.example' })
})

test('a new issuer takes the whole of its access', async () => {
  const refused = (options: object, why: RegExp) =>
    assert.rejects(requestFrom(cli, given(options)), (error: Error) => why.test(error.message))
  await refused({ role: ['*=node'] }, /--mount, --role and --auth together/)
  await refused({ provisioner: 'muster' }, /--provisioner and --renewal-provisioner together/)
  await refused({ mount: 'pki', auth: 'token', role: ['node'] }, /--role takes PROFILE=ROLE, output:NAME=ROLE/)
})
