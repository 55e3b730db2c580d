import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test } from 'node:test'
import { readAccelerators } from './accelerators.ts'

test('graphics cards and processing accelerators are counted by what they are, other devices are not', (t) => {
  const sys = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-sys-'))
  t.after(() => fs.rmSync(sys, { recursive: true }))
  const devices = [
    ['0000:17:00.0', '0x030200', '0x10de', '0x2330'],
    ['0000:3d:00.0', '0x030200', '0x10de', '0x2330'],
    ['0000:40:00.0', '0x120000', '0x1da3', '0x1020'],
    ['0000:03:00.0', '0x030000', '0x1a03', '0x2000'],
    ['0000:04:00.0', '0x020000', '0x15b3', '0x1021'],
    ['0000:05:00.0', '0x030000', 'damaged', '0x2000'],
  ] as const
  for (const [name, kind, vendor, device] of devices) {
    const folder = path.join(sys, 'bus/pci/devices', name)
    fs.mkdirSync(folder, { recursive: true })
    for (const [file, text] of Object.entries({ class: kind, vendor, device }))
      fs.writeFileSync(path.join(folder, file), `${text}\n`)
  }
  assert.deepEqual(readAccelerators(sys), [
    { device: '10de:2330', count: 2 },
    { device: '1a03:2000', count: 1 },
    { device: '1da3:1020', count: 1 },
  ])
  assert.deepEqual(readAccelerators(path.join(sys, 'none')), [])
})
