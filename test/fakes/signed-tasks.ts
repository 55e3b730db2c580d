// What a plane signs for tasks, with keys of the test: statements of verifiers and envelopes, right ones or changed ones.

import { systemClock } from '#platform/clock.ts'
import { generateKey, keyId, type PrivateKey } from '#pki/keys.ts'
import { toPem } from '#pki/pem.ts'
import { formatStatement } from '#wire/core/statement.ts'
import type { TaskEnvelope, Verifiers } from '#wire/core/task-statements.ts'
import { thisNode } from './host-of-programs.ts'

export const hourMs = 3_600_000

export type TaskAuthority = {
  readonly statementKey: PrivateKey
  readonly signer: PrivateKey
  /** What root lays down on the host. */
  readonly pem: string
  statement(change?: Partial<Verifiers>, key?: PrivateKey): string
  /** With an id of its own, unless `change` has one. */
  task(change?: Partial<TaskEnvelope>, key?: PrivateKey): string
}

export const spkiOf = ({ spki }: PrivateKey): string => Buffer.from(spki).toString('base64')
export const verifierOf = (key: PrivateKey): Verifiers['verifiers'][number] => ({
  key: keyId(key.spki),
  spki: spkiOf(key),
})

const letters = 'abcdefghijklmnopqrstuvwxyz234567'

/** The nth, of that shape. */
export const taskId = (number: number): string => {
  let text = ''
  for (let rest = number, at = 0; at < 26; at++) {
    text = letters.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return `task_${text}`
}

export const taskAuthority = (nowMs = systemClock.nowMs()): TaskAuthority => {
  const statementKey = generateKey('ed25519')
  const signer = generateKey('ed25519')
  let tasks = 0
  return {
    statementKey,
    signer,
    pem: toPem('PUBLIC KEY', statementKey.spki),
    statement: (change = {}, key = statementKey) =>
      formatStatement(
        'verifiers',
        {
          domain: thisNode.domain,
          node: thisNode.id,
          epoch: 3,
          number: 7,
          verifiers: [verifierOf(signer)],
          withdrawn: [],
          statement_keys: [spkiOf(statementKey)],
          issued_ms: nowMs,
          expires_ms: nowMs + 24 * hourMs,
          nonce: null,
          ...change,
        },
        (bytes) => key.sign(bytes),
      ),
    task: (change = {}, key = signer) =>
      formatStatement(
        'task',
        {
          domain: thisNode.domain,
          node: thisNode.id,
          epoch: 3,
          id: taskId(++tasks),
          type: 'run',
          parameters: { name: 'hello' },
          issued_ms: nowMs,
          expires_ms: nowMs + hourMs,
          key: keyId(key.spki),
          counter: tasks,
          ...change,
        },
        (bytes) => key.sign(bytes),
      ),
  }
}

/** The text with one field changed and the signature left as it was. */
export const withField = (text: string, field: string, value: unknown): string => {
  const [head = '', body = '', signature = ''] = text.split('.')
  const fields = JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Record<string, unknown>
  return `${head}.${Buffer.from(JSON.stringify({ ...fields, [field]: value })).toString('base64url')}.${signature}`
}
