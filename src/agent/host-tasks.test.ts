import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HelperRefusal, type HelperClient } from './helper/client.ts'
import { openHostTasks } from './host-tasks.ts'

/** A helper that refuses everything with that code. */
const refusing = (code: string, message = 'why'): HelperClient => ({
  ask: () => Promise.reject(new HelperRefusal(code, message)),
  close: () => {},
})

const outcomeOf = async (code: string, message?: string) =>
  openHostTasks(refusing(code, message)).begin('statement', 'task', null)

test('a fault in the helper is no verdict: whether the task was begun is asked again', async () => {
  assert.equal((await outcomeOf('NOT_DONE')).kind, 'again')
  assert.equal((await outcomeOf('A_CODE_OF_LATER')).kind, 'again')
})

test('what the helper does not take is refused for its type, and what it has judged by its fault', async () => {
  assert.deepEqual(await outcomeOf('NOT_ALLOWED'), {
    ...{ kind: 'refused', fault: 'TYPE_NOT_ALLOWED', why: 'why' },
    isUnjudged: true,
  })
  assert.deepEqual(await outcomeOf('TASK_REFUSED', 'WRONG_NODE: why'), {
    ...{ kind: 'refused', fault: 'WRONG_NODE' },
    why: 'why',
  })
})
