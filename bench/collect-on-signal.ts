// Preloaded into a measured plane, and into its threads: SIGUSR2 collects garbage in each of them, so that memory can be read without
// what is already dead.

import { BroadcastChannel, isMainThread } from 'node:worker_threads'

const orders = new BroadcastChannel('collect')
orders.unref()

if (isMainThread)
  process.on('SIGUSR2', () => {
    globalThis.gc?.()
    orders.postMessage(null)
  })
else
  orders.onmessage = () => {
    globalThis.gc?.()
  }
