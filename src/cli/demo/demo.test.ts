import assert from 'node:assert/strict'
import { test } from 'node:test'
import { demoFleet } from './demo.ts'

test('every node of the demo has a name, an address and a serial of its own, and all kinds are there', () => {
  const fleet = demoFleet(2000)
  for (const field of ['id', 'mac', 'bmcSerial'] as const) {
    assert.equal(new Set(fleet.map((node) => node[field])).size, fleet.length, field)
  }
  assert.equal(demoFleet(25).filter((node) => node.profile === 'gpu-cloud').length, 18)
  assert.equal(new Set(demoFleet(25).map((node) => node.profile)).size, 3)
  assert.equal(demoFleet(1)[0]?.id, 'gpu-001')
})
