// A thread of this program: its file lies beside this one, in the sources and in a bundle; the executable carries its text.

import { getAsset, isSea } from 'node:sea'
import { Worker } from 'node:worker_threads'

export type OwnThread = 'pkcs11-thread' | 'signature-thread' | 'tls-thread'

export const startOwnThread = (file: OwnThread, name: string, start: unknown): Worker => {
  const options = { workerData: start, name }
  if (isSea()) return new Worker(getAsset(`${file}.js`, 'utf8'), { ...options, eval: true })
  const suffix = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new Worker(new URL(`./${file}.${suffix}`, import.meta.url), options)
}
