// A plane in the process of the test: the real thing from its configuration to its end, without the cost of a start.

import * as fs from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import * as path from 'node:path'
import { planeConfig } from '#plane/config/config.ts'
import { runPlane, type PlaneReady } from '#plane/main.ts'
import type { NodeTarget } from './node-call.ts'
import { operatorCall, type Reply } from './operator-call.ts'

export type PlaneHere = {
  readonly ready: PlaneReady
  api(method: 'GET' | 'POST', path: string, body?: object): Promise<Reply>
  target(): Promise<NodeTarget>
  stop(): Promise<void>
}

const anyPort = '127.0.0.1:0'

/** Rejects where the plane does not start. `adminKey`: left out, the one in the data folder. */
export const startPlaneHere = async (
  data: string,
  options: Readonly<Record<string, unknown>> = {},
  adminKey?: string,
  env: Readonly<Record<string, string>> = {},
): Promise<PlaneHere> => {
  const config = planeConfig(
    {
      data,
      nodeListen: anyPort,
      recoveryListen: anyPort,
      operatorListen: anyPort,
      statusListen: anyPort,
      logLevel: 'silent',
      ...options,
    },
    env,
  )
  const stop = new AbortController()
  let ended: Promise<void> = Promise.resolve()
  const ready = await new Promise<PlaneReady>((resolve, reject) => {
    ended = runPlane(config, resolve, stop.signal)
    ended.catch(reject)
  })
  const key = adminKey ?? fs.readFileSync(path.join(data, 'admin.key'), 'utf8').trim()
  const api: PlaneHere['api'] = (method, where, body) => operatorCall(ready.socketPath, key, method, where, body)
  return {
    ready,
    api,
    async target() {
      return { url: ready.nodeUrl, roots: (await api('GET', '/v1/ca/bundle')).body.roots }
    },
    async stop() {
      // Connections are kept for a next call, which would go to a plane that has stopped; and it would wait for them.
      http.globalAgent.destroy()
      https.globalAgent.destroy()
      stop.abort()
      await ended
    },
  }
}
