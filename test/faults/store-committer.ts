// Started by store-crash.test.ts and killed by it: commits without end and prints each id once its promise resolved.

import { createPrivateKey, createPublicKey } from 'node:crypto'
import * as fs from 'node:fs'
import { errno } from '#platform/files.ts'
import { newNode, openStore, signerOf } from '../store/harness.ts'

const [folder = '', keyFile = '', life = ''] = process.argv.slice(2)
const key = createPrivateKey(fs.readFileSync(keyFile))
const store = await openStore(folder, signerOf(key, createPublicKey(key)))

const asleep = new Int32Array(new SharedArrayBuffer(4))

/** Synchronous: what was acknowledged must not sit in a buffer that dies with the process. The reader may be slower than this. */
const acknowledge = (id: string): void => {
  for (;;) {
    try {
      return void fs.writeSync(1, `${id}\n`)
    } catch (error) {
      if (errno(error) !== 'EAGAIN') throw error
      Atomics.wait(asleep, 0, 0, 1)
    }
  }
}

const commitForever = async (lane: number): Promise<void> => {
  for (let count = 0; ; count++) {
    const id = `${life}-${lane}-${count}`
    if ((await store.commit(newNode(id))) === 'lost-race') throw new Error(`${id} has nobody to lose to`)
    acknowledge(id)
  }
}

await Promise.all(Array.from({ length: 20 }, (_, lane) => commitForever(lane)))
