// What a test asks a plane about, and tells it, in the words of the operator API.

import assert from 'node:assert/strict'
import { eventually, type Patience } from '../process/eventually.ts'
import type { Json, Reply } from '../process/operator-call.ts'
import type { Plane } from '../process/start-plane.ts'

export const nodeOf = async (plane: Plane, id: string): Promise<Json> =>
  (await plane.api('GET', `/v1/nodes/${id}`)).body

export const membershipOf = async (plane: Plane, id: string): Promise<string> => (await nodeOf(plane, id)).membership

export const untilMembership = (plane: Plane, id: string, kind: string, patience?: Patience): Promise<true> =>
  eventually(`${id} to be ${kind}`, async () => (await membershipOf(plane, id)) === kind, patience)

export const conditionsOf = async (plane: Plane, id: string): Promise<string[]> =>
  (await nodeOf(plane, id)).conditions.map(({ name }: { name: string }) => name)

/** Entries as they were hashed, oldest first. */
export const journalOf = async (plane: Plane, query: { node?: string; type?: string }): Promise<Json[]> => {
  const { body } = await plane.api('GET', `/v1/journal?${new URLSearchParams({ ...query, limit: '1000' }).toString()}`)
  return body.entries.map(({ entry }: { entry: Json }) => entry)
}

/** Refusals are written after they are answered, so this waits. */
export const refusalIn = (plane: Plane, code: string, about: { node?: string; token?: string } = {}): Promise<Json> =>
  eventually(`the journal to have ${code}`, async () =>
    (await journalOf(plane, { type: 'refused' })).findLast(
      ({ body, node, token }: Json) =>
        body.code === code &&
        (about.node === undefined || node === about.node) &&
        (about.token === undefined || token === about.token),
    ),
  )

export type MadeToken = { readonly id: string; readonly secret: string; readonly join: string }

/** `{ node }` for a node, `{ profile }` for one of the domain. */
export const makeToken = async (plane: Plane, asked: object): Promise<MadeToken> => {
  const { token, secret, join } = succeeded(await plane.api('POST', '/v1/tokens', asked))
  return { id: token.id, secret, join }
}

export const tokenOf = async (plane: Plane, id: string): Promise<Json> => {
  const { tokens } = (await plane.api('GET', '/v1/tokens')).body
  return tokens.find((token: { id: string }) => token.id === id)
}

export const act = async (plane: Plane, id: string, action: string, body: object = {}): Promise<Json> =>
  succeeded(await plane.api('POST', `/v1/nodes/${id}/${action}`, body))

/** The body of a success; anything else fails with what was answered. */
export const succeeded = ({ status, body }: Pick<Reply, 'status' | 'body'>): Json => {
  assert.ok(status >= 200 && status < 300, `${status} ${JSON.stringify(body)}`)
  return body
}

/** What a refusal is known by. */
export const refusal = ({ status, body }: Pick<Reply, 'status' | 'body'>): [number, string] => [status, body.code]
