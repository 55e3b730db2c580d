import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { Cli } from '#cli/kit/cli.ts'
import { testCli } from '../../../test/fakes/test-cli.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { planOrDo } from './plan.ts'

const planOf = (id: string) => ({
  ...{ id, action: 'change-nodes', by: 'operator:admin', applied_at: null, applied_by: null },
  ...{ computed_at: '2026-01-05T08:00:00.000Z', expires_at: '2026-01-05T09:00:00.000Z' },
  effects: [{ subject: `node ${id}`, effect: 'drained', loses: null, unrecoverable: null, facts: [] }],
})

const applied = (id: string) => ({
  plan: planOf(id),
  steps: [{ subject: `node ${id}`, done: true, code: null, detail: null, receipt: null }],
})

test('of several plans what was done is shown, though a later one is refused', async (t) => {
  const data = tempFolder(t)
  fs.writeFileSync(path.join(data, 'admin.key'), `muster_key_${'k'.repeat(43)}`)
  let computed = 0
  const openHttp = (): ReturnType<Cli['openHttp']> => ({
    async send({ path: call }) {
      const id = /^\/v1\/plans\/(\w+)\/apply$/.exec(call)?.[1]
      if (id === undefined) return { status: 201, body: JSON.stringify(planOf(`p${++computed}`)) }
      if (id === 'p1') return { status: 200, body: JSON.stringify(applied(id)) }
      const refusal = { code: 'PLAN_STALE', message: 'Stale.', detail: null, next: 'Again', retry_after_ms: null }
      return { status: 409, body: JSON.stringify(refusal) }
    },
    close() {},
  })
  const { cli, stdout, stderr } = testCli({ openHttp })
  const actions = [1, 2, 3].map(() => ({
    kind: 'change-nodes' as const,
    ...{ select: { names: ['a'] }, change: { verb: 'drain' as const } },
  }))
  await assert.rejects(planOrDo(cli, { output: 'table', data, yes: true }, actions), { code: 'PLAN_STALE' })
  assert.match(stdout(), /^SUBJECT +OUTCOME +PROOF\nnode p1 +done/)
  assert.match(stderr(), /^2 of 3 plans not applied$/m)
})
