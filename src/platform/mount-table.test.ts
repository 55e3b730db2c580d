import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUnchangeable, parseMounts } from './mount-table.ts'

/** Of a container: its own root, a ConfigMap, and an emptyDir on the same disk. */
const container = `
601 500 0:52 / / rw,relatime - overlay overlay rw,lowerdir=/l
602 601 0:55 / /proc rw,nosuid - proc proc rw
610 601 8:1 /kubelet/pods/1/configmap /etc/muster ro,relatime - ext4 /dev/sda1 rw
611 601 8:1 /kubelet/pods/1/empty /var/lib/with\\040space rw,relatime - ext4 /dev/sda1 rw
`

test('a folder on a read-only mount is unchangeable, and one on another mount is not', () => {
  const mounts = parseMounts(container)
  assert.equal(mounts.length, 4)
  assert.equal(mounts[3]?.point, '/var/lib/with space')
  for (const folder of ['/etc/muster', '/etc/muster/..2026_11_18'])
    assert.ok(isUnchangeable(folder, '8:1', mounts), folder)
  for (const [folder, device] of [
    ['/etc', '0:52'],
    ['/etc/muster-other', '0:52'],
    ['/', '0:52'],
    ['/var/lib/with space', '8:1'],
  ] as const)
    assert.ok(!isUnchangeable(folder, device, mounts), folder)
})

test('a folder that can be reached by a writable mount as well is not unchangeable', () => {
  const also = (line: string) => isUnchangeable('/etc/muster/data', '8:1', parseMounts(container + line))
  assert.ok(also('620 601 8:1 /kubelet/pods/2 /mnt rw - ext4 /dev/sda1 rw\n'))
  assert.ok(also('620 601 8:1 /kubelet/pods/1 /mnt ro - ext4 /dev/sda1 rw\n'))
  for (const root of ['/', '/kubelet', '/kubelet/pods/1/configmap', '/kubelet/pods/1/configmap/data'])
    assert.ok(!also(`620 601 8:1 ${root} /mnt rw - ext4 /dev/sda1 rw\n`), root)
})

test('what is not clear is taken for writable', () => {
  const mounts = parseMounts(container)
  assert.ok(!isUnchangeable('/etc/muster', '8:2', mounts), 'another device: something is mounted over it')
  assert.ok(
    !isUnchangeable('/etc/muster', '8:1', parseMounts(`${container}620 601 8:1 /x /etc/muster ro - ext4 /d rw\n`)),
  )
  assert.ok(!isUnchangeable('/etc/muster', '8:1', parseMounts('')))
  assert.ok(!isUnchangeable('/etc/muster', '8:1', parseMounts('not a mount\n\n')))
})
