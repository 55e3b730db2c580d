import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resultOfReboot } from './reboot-task.ts'

const codeOf = (boot: string | null, now: string | null) =>
  resultOfReboot(
    {
      ...{ id: 'task_a', type: 'reboot', key: 'signer', attempts: 1, expires_ms: 2, begun_ms: 1, boot },
      ...{ by: { pid: 1, birth: null }, parameters: null, result: null, forgotten: false },
    },
    now,
  ).code

test('a machine was restarted where the same source names another boot', () => {
  assert.equal(codeOf('kernel/a', 'kernel/b'), null)
  assert.equal(codeOf('systemd/a', 'systemd/b'), null)
  assert.equal(codeOf('kernel/a', 'kernel/a'), 'INTERRUPTED')
})

test('what two sources say of a boot, or nothing, shows no restart', () => {
  assert.equal(codeOf('systemd/a', 'kernel/b'), 'INTERRUPTED')
  assert.equal(codeOf('kernel/a', null), 'INTERRUPTED')
  assert.equal(codeOf(null, 'kernel/a'), 'INTERRUPTED')
})
