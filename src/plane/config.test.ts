import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planeConfig } from './config.ts'

test('nodes recover at the address they connect to, on a port of its own, unless told otherwise', () => {
  assert.deepEqual(planeConfig({}, {}).recoveryListen, { host: '127.0.0.1', port: 8442 })
  assert.deepEqual(planeConfig({ nodeListen: '0.0.0.0:443' }, {}).recoveryListen, { host: '0.0.0.0', port: 8442 })
  const elsewhere = planeConfig({ nodeListen: '0.0.0.0:443' }, { MUSTER_RECOVERY_LISTEN: '[::1]:9442' })
  assert.deepEqual(elsewhere.recoveryListen, { host: '::1', port: 9442 })
})
