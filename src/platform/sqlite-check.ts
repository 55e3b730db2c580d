// PRAGMA quick_check beside a running plane. It reads the whole file, so it runs in a thread of its own, a table at a time:
// a single long read would keep the write-ahead log from being folded back all the while.

import { Worker } from 'node:worker_threads'

const script = `
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require('node:sqlite')
const check = (database) => {
  for (const { name } of database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()) {
    const found = database.prepare('PRAGMA quick_check("' + name.replaceAll('"', '""') + '")').all()
    const wrong = found.map((row) => Object.values(row)[0]).find((text) => text !== 'ok')
    if (wrong !== undefined) return name + ': ' + wrong
  }
  return null
}
let answer
try {
  const database = new DatabaseSync(workerData, { readOnly: true, timeout: 5000 })
  try { answer = { fault: check(database) } } finally { database.close() }
} catch (error) {
  // SQLITE_CORRUPT and SQLITE_NOTADB; all else, such as a file that is busy, says nothing of damage.
  const damaged = [11, 26].includes(error.errcode & 0xff)
  answer = damaged ? { fault: error.message } : { trouble: error.message }
}
parentPort.postMessage(answer)
`

type Answer = { readonly fault: string | null } | { readonly trouble: string }

/** Null: nothing is wrong with it. Rejects where that cannot be said. */
export const quickCheck = (file: string): Promise<string | null> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(script, { eval: true, workerData: file })
    worker.once('message', (answer: Answer) =>
      'trouble' in answer ? reject(new Error(answer.trouble)) : resolve(answer.fault),
    )
    worker.once('error', reject)
    // After an answer this changes nothing.
    worker.once('exit', () => reject(new Error('the check of the database file ended without an answer')))
  })
