// The walk over all routes of the node listener, the channel among them: each says who may call it, and a real plane holds
// to it before any handler.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeRoutes, type NodeRouteParts } from '#plane/boot/node-routes.ts'
import { activeNode } from '../process/active-node.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import { openTlsConnection, type TlsConnection } from '../process/tls-connection.ts'
import type { Core } from '#plane/core/core.ts'
import { pathOf } from '#wire/core/endpoint.ts'

const shared = sharedPlane()
// Listing routes asks nothing of what they are given.
const routes = nodeRoutes({} as Core, { limits: {}, channel: {} } as NodeRouteParts)

test('only enrollment of nodes and workers, the challenge before it, the bundle, and what another domain has signed need no certificate; the agent takes a token too, and every other route is for the node or the worker it names', () => {
  assert.deepEqual(
    routes.map(({ method, path, access }) => `${method} ${path} ${access}`),
    [
      'POST /v1/enroll anyone',
      'POST /v1/challenge anyone',
      'POST /v1/nodes/:id/confirm node-itself',
      'POST /v1/nodes/:id/renew node-itself',
      'GET /v1/nodes/:id/channel node-itself',
      'POST /v1/nodes/:id/programs/:output node-itself',
      'GET /v1/nodes/:id/program-lists node-itself',
      'POST /v1/nodes/:id/task-verifiers node-itself',
      'POST /v1/nodes/:id/overlay-statement node-itself',
      'POST /v1/workers/enroll anyone',
      'POST /v1/workers/:worker/renew worker',
      'GET /v1/workers/:worker/certificate worker',
      'GET /v1/nodes/:id/tasks/wait node-itself',
      'POST /v1/nodes/:id/tasks/:task/result node-itself',
      'POST /v1/worker-tasks worker',
      'GET /v1/worker-tasks/:id worker',
      'POST /v1/claims anyone',
      'GET /v1/bundle anyone',
      'GET /v1/agent/:digest machine',
      'GET /v1/nodes/:id/task-files/:digest node-itself',
    ],
  )
})

test('a caller without a certificate, or with that of another node, reaches no handler', async (t) => {
  const target = await shared().target()
  const node = await activeNode(shared(), 'walker')
  const callers = [
    { identity: null, code: 'CLIENT_CERT_REQUIRED' },
    { identity: node.identity(), code: 'IDENTITY_MISMATCH' },
  ]
  for (const { method, path, access, kind } of routes) {
    if (access === 'anyone') continue
    const filled = {
      ...{ id: 'somebody-else', output: 'nginx', digest: 'a'.repeat(64), task: `task_${'a'.repeat(26)}` },
      worker: 'east.5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21',
    }
    const address = pathOf({ path }, filled)
    const ask = async (connection: TlsConnection) =>
      kind === 'upgrade'
        ? connection.upgrade(address)
        : connection.call(method as 'GET' | 'POST', address, ...(method === 'GET' ? [] : [{ garbage: 1 }]))
    for (const { identity, code } of callers) {
      // Any node may fetch the agent: none of this digest is there. What is for workers is for no node.
      const machine = access === 'machine' && identity !== null ? 'AGENT_NOT_FOUND' : code
      const expected: string =
        access === 'worker' ? (identity === null ? 'WORKER_CERT_REQUIRED' : 'WRONG_PRINCIPAL') : machine
      // One each: a refused upgrade ends its connection.
      const connection = await openTlsConnection(t, target, identity)
      assert.equal((await ask(connection)).body.code, expected, `${method} ${path}`)
    }
  }
})
