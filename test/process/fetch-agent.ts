// Agents that a plane hands out, small ones, and how a machine asks for them.

import { createHash, randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as https from 'node:https'
import * as path from 'node:path'
import { gzipSync } from 'node:zlib'
import { readReply } from './operator-call.ts'
import { sharedTlsOptions, type Identity, type NodeTarget } from './node-call.ts'

export type PutAgent = { readonly file: string; readonly bytes: Buffer; readonly digest: string }

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** An executable that says its version and nothing else. */
export const standIn = (version: string): Buffer => Buffer.from(`#!/bin/sh\n# needs no Node\necho ${version}\n`)

export const putAgent = (folder: string, name: string, executable: Uint8Array): PutAgent => {
  fs.mkdirSync(folder, { recursive: true, mode: 0o755 })
  const bytes = gzipSync(executable)
  const file = path.join(folder, name)
  fs.writeFileSync(`${file}.new`, bytes, { mode: 0o644 })
  fs.renameSync(`${file}.new`, file)
  return { file, bytes, digest: sha256Of(bytes) }
}

/** More than all buffers between a plane and a machine that does not read. */
export const putLargeAgent = (folder: string, name: string): PutAgent => putAgent(folder, name, randomBytes(24 << 20))

export type Fetched = { readonly status: number; readonly headers: Record<string, unknown>; readonly bytes: Buffer }

export type Asked = {
  readonly identity?: Identity
  readonly token?: string
  readonly method?: 'GET' | 'HEAD' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  /** The address it calls from. */
  readonly from?: string
}

const requestFor = (target: NodeTarget, digest: string, asked: Asked) =>
  https.request({
    ...sharedTlsOptions(target, asked.identity ?? null),
    agent: false,
    method: asked.method ?? 'GET',
    path: `/v1/agent/${digest}`,
    ...(asked.from === undefined ? {} : { localAddress: asked.from }),
    headers: {
      host: new URL(target.url).host,
      ...(asked.token === undefined ? {} : { authorization: `Bearer ${asked.token}` }),
      ...asked.headers,
    },
  })

export const fetchAgent = (target: NodeTarget, digest: string, asked: Asked = {}): Promise<Fetched> =>
  new Promise((resolve, reject) => {
    const request = requestFor(target, digest, asked)
    request.on('error', reject)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(chunks) }),
      )
    })
    request.end()
  })

export type HeldDownload = {
  readonly status: number
  /** Of a refusal. */
  readonly retryAfterMs: number | null
  hangUp(): void
}

/** Begins a download and reads nothing of it. */
export const holdDownload = (target: NodeTarget, digest: string, asked: Asked): Promise<HeldDownload> =>
  new Promise((resolve, reject) => {
    const request = requestFor(target, digest, asked)
    request.on('error', reject)
    request.on('response', (response) => {
      request.off('error', reject).on('error', () => {})
      response.on('error', () => {})
      const status = response.statusCode ?? 0
      const hangUp = (): void => void request.destroy()
      if (status === 200) {
        response.pause()
        return resolve({ status, retryAfterMs: null, hangUp })
      }
      void readReply(response).then(
        ({ body }) => resolve({ status, retryAfterMs: body.retry_after_ms, hangUp }),
        reject,
      )
    })
    request.end()
  })

export const codeOf = ({ bytes }: Fetched): string => (JSON.parse(bytes.toString()) as { code: string }).code
