// The keys that sign tasks, for those who look after them.

import { Type, type Static } from 'typebox'
import { isVerifier, type Signer, type TaskSigners } from '#domain/tasks/signers.ts'
import { isoTime, isoTimeOrNull } from '#platform/clock.ts'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, oneOf, orNull, text } from '#wire/core/shapes.ts'
import { KeyIdText } from '#wire/core/task-statements.ts'

export const SignerView = Type.Object({
  /** The key id of its public key. */
  key: Type.String(),
  version: Type.Integer(),
  state: oneOf(['next', 'signing', 'grace', 'withdrawn', 'retired']),
  /** In that state. */
  since: Type.String(),
  /** Of `next`: when it signs; of `grace` and `withdrawn`: when it retires. Null: it has no end. */
  until: orNull(Type.String()),
  /** Why it was withdrawn. */
  reason: orNull(Type.String()),
  /** How many nodes have reported a statement that names it in this role: as accepted, or as withdrawn. Null: it is in no statement. */
  nodes: orNull(Type.Integer()),
})
export type SignerView = Static<typeof SignerView>

export const SignerListAnswer = Type.Object({
  /** Of the newest statement. */
  number: Type.Integer(),
  signers: Type.Array(SignerView),
  /** Nodes by the number of the statement they have reported, the newest first. */
  reported: Type.Array(Type.Object({ number: Type.Integer(), nodes: Type.Integer() })),
  warnings: Type.Array(Type.String()),
})
export type SignerListAnswer = Static<typeof SignerListAnswer>

/** `POST /v1/task-signers/rotate` */
export const RotateSignerRequest = Type.Object(
  {
    /** `usual`: it signs when every host has it. `now`: at once. `back`: undoes the last rotation. Left out: `usual`. */
    how: Type.Optional(oneOf(['usual', 'now', 'back'])),
  },
  closed,
)
/** `POST /v1/task-signers/withdraw` */
export const WithdrawSignerRequest = Type.Object({ key: KeyIdText, reason: text(256) }, closed)

/** `reported`: how many nodes have each number. */
export const signerListView = (
  { number, signers }: TaskSigners,
  reported: ReadonlyMap<number, number>,
  warnings: readonly string[],
): SignerListAnswer => ({
  number,
  signers: signers.map((signer) => signerView(signer, reported)),
  reported: [...reported].map(([one, nodes]) => ({ number: one, nodes })).sort((a, b) => b.number - a.number),
  warnings: [...warnings],
})

const signerView = (signer: Signer, reported: ReadonlyMap<number, number>): SignerView => {
  const { key, version, state } = signer
  const withdrawn = state.kind === 'withdrawn' ? state : null
  const from = isVerifier(signer) ? signer.firstNumber : (withdrawn?.sinceNumber ?? null)
  return {
    ...{ key, version, state: state.kind, since: isoTime(state.sinceMs), until: isoTimeOrNull(untilMsOf(signer)) },
    reason: withdrawn?.reason ?? null,
    nodes: from === null ? null : nodesWith(reported, from),
  }
}

/** Those whose statement has this number or a later one. */
const nodesWith = (reported: ReadonlyMap<number, number>, from: number): number =>
  [...reported].reduce((sum, [number, nodes]) => (number >= from ? sum + nodes : sum), 0)

const untilMsOf = ({ state }: Signer): number | null => {
  switch (state.kind) {
    case 'next':
      return state.signsAtMs
    case 'grace':
    case 'withdrawn':
      return state.untilMs
    case 'signing':
    case 'retired':
      return null
  }
}

export const signerApi = {
  list: endpoint({
    method: 'GET',
    path: '/v1/task-signers',
    access: 'viewer',
    summary: 'The keys that sign tasks, and how many nodes have which of them',
    answer: SignerListAnswer,
  }),
  rotate: endpoint({
    method: 'POST',
    path: '/v1/task-signers/rotate',
    access: 'platform-admin',
    summary: 'A new task signer: it reaches the nodes first, and signs when all have it',
    body: RotateSignerRequest,
    answer: SignerListAnswer,
  }),
  withdraw: endpoint({
    method: 'POST',
    path: '/v1/task-signers/withdraw',
    access: 'platform-admin',
    summary: 'Withdraws a task signer whose key may be compromised: nodes accept nothing it has signed any more',
    body: WithdrawSignerRequest,
    answer: SignerListAnswer,
  }),
}
