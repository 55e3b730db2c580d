import assert from 'node:assert/strict'
import { test } from 'node:test'
import { madeForAnother, type MadeFor } from './made-for.ts'

const here: MadeFor = {
  join: 'j1',
  machine: 'm1',
  macs: ['52:54:00:00:00:01', '52:54:00:00:00:02'],
  serial: 'CZ1',
}

test('L3: a request is repeated on the machine and with the join string it was made for', () => {
  assert.equal(madeForAnother(here, here), null)
})

test('L3: a replaced network card, or a fact that cannot be read, does not lose a request that may have been sent', () => {
  assert.equal(madeForAnother(here, { ...here, macs: ['52:54:00:00:00:02', '52:54:00:00:00:09'] }), null)
  assert.equal(madeForAnother(here, { ...here, machine: null, macs: [], serial: null }), null)
  assert.equal(madeForAnother(null, here), null)
})

test('L3: with another join string, machine id, serial number or other network cards it is dropped', () => {
  assert.equal(madeForAnother(here, { ...here, join: 'j2' }), 'join string')
  assert.equal(madeForAnother(here, { ...here, machine: 'm2' }), 'machine')
  assert.equal(madeForAnother(here, { ...here, serial: 'CZ2' }), 'machine')
  assert.equal(madeForAnother(here, { ...here, macs: ['52:54:00:00:00:09'] }), 'machine')
})
