// A thread that checks signatures, and nothing else. It imports their keys as well, and it is one, so that the tables of a curve stay in the
// cache of one processor.

import { createPublicKey, verify, type KeyObject } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import type { CheckAnswer, SentCheck } from './signature-checks.ts'

const port = parentPort
if (port === null) throw new Error('this file is started as a thread')

const answerTo = ([digest, key, data, signature]: SentCheck): CheckAnswer => {
  try {
    const imported = importKey(key)
    return imported !== null && verify(digest, bytes(data), imported, bytes(signature))
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) }
  }
}

const importKey = (spki: string): KeyObject | null => {
  try {
    return createPublicKey({ key: bytes(spki), format: 'der', type: 'spki' })
  } catch {
    return null
  }
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

port.on('message', (checks: readonly SentCheck[]) => port.postMessage(checks.map(answerTo)))
