import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { expectRefused } from '../../../test/fakes/expect-decision.ts'
import { hardwareIdentity, isPlaceholderSerial, normaliseMac } from './hardware-identity.ts'

test('a MAC address is the same however it is written', () => {
  for (const text of ['B8:CE:F6:01:02:03', 'b8-ce-f6-01-02-03', 'b8ce.f601.0203', ' b8cef6010203 ']) {
    assert.equal(normaliseMac(text), 'b8:ce:f6:01:02:03')
  }
})

test('an address no single interface can have is none', () => {
  const wrong = ['00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff', '01:00:5e:00:00:01', '33:33:00:00:00:01']
  for (const text of [...wrong, '', 'b8:ce:f6', 'b8:ce:f6:01:02:0g', 'b8:ce-f6:01:02:03', 'b8:ce:f6:01:02:03:04']) {
    assert.equal(normaliseMac(text), null, text)
  }
})

test('a locally administered address is accepted: virtual machines have nothing else', () => {
  assert.equal(normaliseMac('02:00:00:00:00:01'), '02:00:00:00:00:01')
})

test('serials that board makers leave blank are placeholders', () => {
  const blank = [
    'To Be Filled By O.E.M.',
    'Default string',
    '0',
    'None',
    'Not Specified',
    ' ',
    '00000000',
    'XXXX',
    'N/A',
  ]
  for (const text of blank) assert.equal(isPlaceholderSerial(text), true, text)
  assert.equal(isPlaceholderSerial('S4D07211'), false)
})

test('a hardware identity is sorted and has no duplicates', () => {
  assert.deepEqual(hardwareIdentity(['0a:00:00:00:00:02', '0A-00-00-00-00-01', '0a0000000002'], ' S4D07211 '), {
    macs: ['0a:00:00:00:00:01', '0a:00:00:00:00:02'],
    bmcSerial: 'S4D07211',
  })
})

test('a hardware identity that cannot distinguish machines is refused by name', () => {
  const refused = (macs: string[], serial: string | null, why: RegExp) => {
    const verdict = hardwareIdentity(macs, serial)
    assert.ok('kind' in verdict)
    expectRefused(verdict, 'REQUEST_INVALID', why)
  }
  refused(['ff:ff:ff:ff:ff:ff'], null, /^ff:ff:ff:ff:ff:ff is not/)
  refused([], 'Default string', /"Default string" is one that many machines share/)
  refused([], 'A\u0007B', /printable/)
  refused([], 'AB'.repeat(65), /at most 128/)
  refused(Array<string>(65).fill('02:00:00:00:00:01'), null, /at most 64/)
})

test('normalising twice changes nothing, and no text crashes it', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^([0-9a-fA-F]{2}[:-]?){6}$/)), (text) => {
      const mac = normaliseMac(text)
      if (mac !== null) assert.equal(normaliseMac(mac), mac)
    }),
  )
})
