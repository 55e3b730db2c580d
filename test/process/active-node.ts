// A node that is past its enrollment: invited, enrolled, confirmed.

import assert from 'node:assert/strict'
import { rawNode, type RawNode } from './raw-node.ts'
import type { Plane } from './start-plane.ts'

/** `profile`: the node's; left out, the domain's default. */
export const activeNode = async (plane: Plane, id: string, profile?: string): Promise<RawNode> => {
  const asked = { node: id, ...(profile === undefined ? {} : { profile }) }
  const { body } = await plane.api('POST', '/v1/tokens', asked)
  const node = rawNode(await plane.target())
  const enrolled = await node.enrollByToken(body.secret)
  assert.equal(enrolled.status, 200, JSON.stringify([body.code ?? null, enrolled.body]))
  const confirmed = await node.confirm()
  assert.equal(confirmed.status, 200, JSON.stringify(confirmed.body))
  return node
}
