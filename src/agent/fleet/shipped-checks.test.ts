import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { shippedCheck, type Trees } from './shipped-checks.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'

const write = (file: string, text: string): void => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
}

type Machine = { readonly mounts?: string; readonly gpus?: number; readonly atDriver?: number }

const machine = (t: TestContext, { mounts = '', gpus = 0, atDriver }: Machine): Trees => {
  const folder = tempFolder(t)
  const trees = { proc: path.join(folder, 'proc'), sys: path.join(folder, 'sys') }
  write(path.join(trees.proc, 'self/mounts'), mounts)
  for (let at = 0; at < gpus; at++) {
    const device = path.join(trees.sys, 'bus/pci/devices', `0000:0${at}:00.0`)
    for (const [name, text] of Object.entries({ vendor: '0x10de', device: '0x2330', class: '0x030200' }))
      write(path.join(device, name), `${text}\n`)
  }
  if (atDriver !== undefined) {
    write(path.join(trees.proc, 'driver/nvidia/version'), 'NVRM version\n')
    for (let at = 0; at < atDriver; at++)
      fs.mkdirSync(path.join(trees.proc, 'driver/nvidia/gpus', `0000:0${at}:00.0`), { recursive: true })
  }
  return trees
}

const lines = (...mounts: readonly string[]): string => mounts.map((mount) => `${mount} 0 0\n`).join('')

const usual = [
  '/dev/sda1 / ext4 rw,relatime',
  'proc /proc proc rw',
  'tmpfs /run tmpfs ro,nosuid',
  '/dev/loop0 /snap/core squashfs ro,nodev',
]

test('a file system that the kernel made read-only is found, by its place and its device', (t) => {
  const check = ['muster:read-only']
  assert.deepEqual(shippedCheck(check, machine(t, { mounts: lines(...usual) })), {
    state: 'passed',
    line: '1 file systems can be written',
  })
  const broken = lines(...usual, '/dev/nvme0n1 /data\\040one xfs ro,noatime')
  assert.deepEqual(shippedCheck(check, machine(t, { mounts: broken })), {
    state: 'failed',
    line: 'read-only: /data one (/dev/nvme0n1)',
  })
})

test('named paths are looked up in the file system that holds them; a later mount covers an earlier one', (t) => {
  const trees = machine(t, { mounts: lines(...usual, '/dev/sdb /data xfs ro', '/dev/sdc /data xfs rw') })
  assert.equal(shippedCheck(['muster:read-only', '/data/x', '/home'], trees)?.state, 'passed')
  assert.equal(shippedCheck(['muster:read-only', '/run/lock'], trees)?.line, 'read-only: /run (tmpfs)')
  assert.equal(shippedCheck(['muster:read-only', '/runaway'], trees)?.state, 'passed')
})

test('a GPU that is missing on the bus, or at its driver, is counted', (t) => {
  const gpus = (wanted: readonly string[], some: Machine) => shippedCheck(['muster:gpus', ...wanted], machine(t, some))
  assert.equal(gpus(['8'], { gpus: 8 })?.line, '8 GPUs on the PCI bus')
  assert.deepEqual(gpus(['8'], { gpus: 7 }), { state: 'failed', line: '7 of 8 GPUs on the PCI bus' })
  assert.deepEqual(gpus(['2'], { gpus: 2, atDriver: 1 }), { state: 'failed', line: '1 of 2 GPUs at the NVIDIA driver' })
  assert.equal(gpus([], { gpus: 2, atDriver: 2 })?.state, 'passed')
  assert.equal(gpus(['1', '1002'], { gpus: 2 })?.line, '0 of 1 GPUs on the PCI bus')
  assert.equal(gpus(['many'], { gpus: 2 })?.state, 'not_run')
})

test('what the agent cannot do is said, and is no failure of the machine', (t) => {
  const trees = machine(t, {})
  assert.match(shippedCheck(['muster:kernel-errors'], trees)?.line ?? '', /needs muster-agent-helper/)
  assert.equal(shippedCheck(['muster:kernel-errors'], trees)?.state, 'not_run')
  assert.equal(shippedCheck(['muster:later'], trees)?.state, 'not_run')
  assert.equal(shippedCheck(['muster:read-only'], trees)?.state, 'not_run')
  assert.equal(shippedCheck(['/usr/bin/check'], trees), null)
})
