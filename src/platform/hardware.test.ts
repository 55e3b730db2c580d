import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { readMachineFacts, readMachineIdentity } from './hardware.ts'

/** A sysfs with these files in it. */
const sysfs = (t: TestContext, files: Record<string, string>): string => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-sys-'))
  t.after(() => fs.rmSync(root, { recursive: true }))
  for (const [file, content] of Object.entries(files)) {
    fs.mkdirSync(path.join(root, 'class', path.dirname(file)), { recursive: true })
    fs.writeFileSync(path.join(root, 'class', file), content)
  }
  return root
}

test('only interfaces with hardware behind them count, sorted and once each', (t) => {
  const sys = sysfs(t, {
    'net/eth1/address': '52:54:00:AA:BB:02\n',
    'net/eth1/device/vendor': '',
    'net/eth0/address': '52:54:00:aa:bb:01\n',
    'net/eth0/device/vendor': '',
    'net/eth2/address': '52:54:00:aa:bb:01\n',
    'net/eth2/device/vendor': '',
    'net/br0/address': '02:42:00:00:00:01\n',
    'net/lo/address': '00:00:00:00:00:00\n',
  })
  const { macs, passedOver } = readMachineIdentity(sys)
  assert.deepEqual(macs, ['52:54:00:aa:bb:01', '52:54:00:aa:bb:02'])
  assert.deepEqual(passedOver, ['br0 (no hardware)'])
})

test('a bonded card is known by its own address, not by that of the bond', (t) => {
  const sys = sysfs(t, {
    'net/eth0/address': '52:54:00:00:00:99\n',
    'net/eth0/device/vendor': '',
    'net/eth0/bonding_slave/perm_hwaddr': '52:54:00:00:00:01\n',
  })
  assert.deepEqual(readMachineIdentity(sys).macs, ['52:54:00:00:00:01'])
})

test('InfiniBand and dead cards have no address we could use', (t) => {
  const sys = sysfs(t, {
    'net/ib0/address': '80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1\n',
    'net/ib0/device/vendor': '',
    'net/eth0/address': '00:00:00:00:00:00\n',
    'net/eth0/device/vendor': '',
  })
  assert.deepEqual(readMachineIdentity(sys).macs, [])
})

test('words that boards carry instead of a serial number are no serial number', (t) => {
  for (const word of ['To Be Filled By O.E.M.', 'Default string', 'None', '0000000', 'Not Specified', '']) {
    const sys = sysfs(t, {
      'dmi/id/product_serial': `${word}\n`,
      'dmi/id/board_serial': 'CZ12345\n',
    })
    assert.equal(readMachineIdentity(sys).serial, 'CZ12345', word)
  }
})

test('a machine without sysfs has no identity and that is no fault', () => {
  assert.deepEqual(readMachineIdentity('/nonexistent'), { macs: [], serial: null, passedOver: [] })
})

test('this machine has cores, memory, a disk and an architecture', () => {
  const facts = readMachineFacts()
  assert.ok(facts.cpuCores > 0 && facts.memoryBytes > 0 && facts.diskBytes > 0 && facts.arch.length > 0)
})
