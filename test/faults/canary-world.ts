// Where the canary test takes place: one folder with a plane, agents, people and a receiver of alerts in it, everything at
// the highest log level, and everything that can be seen of it kept.

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import * as path from 'node:path'
import { generateKey } from '#pki/keys.ts'
import { compiledFolder } from '../process/child.ts'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { tlsOptions, type Identity, type NodeTarget } from '../process/node-call.ts'
import { readReply, type Reply } from '../process/operator-call.ts'
import { runMuster, type Ran, type RunOptions } from '../process/run-muster.ts'
import { startAgent, type Agent, type AgentOptions } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { startReceiver, type WebhookReceiver } from '../process/webhook-receiver.ts'
import { openEvidence, type Evidence } from './canary-evidence.ts'
import {
  learnDerivedTokens,
  learnFromAgent,
  learnFromOutputs,
  learnFromPlane,
  openLedger,
  type Ledger,
} from './canary-ledger.ts'

export type Ask = {
  readonly method?: string
  readonly path: string
  readonly headers?: http.OutgoingHttpHeaders
  /** An object is sent as JSON. */
  readonly body?: object | string
}

export type World = {
  readonly t: Scope
  readonly root: string
  readonly ledger: Ledger
  readonly evidence: Evidence
  readonly receiver: WebhookReceiver
  /** Of the folder. */
  at(...parts: string[]): string
  /** A file only its owner may read, in a folder only its owner may enter. */
  put(file: string, content: string): string
  plane(): Plane
  /** After `kill9` or `stop`. */
  restartPlane(): Promise<Plane>
  /** The command line; all of it is kept. */
  muster(args: readonly string[], options?: RunOptions): Promise<Ran>
  /** The join string of a new token. */
  invite(node: string, profile?: string): Promise<string>
  startAgent(name: string, options: Omit<AgentOptions, 'state'>): Agent
  /** Everything agents and plane hold by now, and everything there is to see of them. */
  look(last?: boolean): void
  /** A call of the operator API with the administrator's key, its answer kept. */
  operate(method: string, where: string, body?: object): Promise<Reply>
  /** Any call of a listener for machines, its answer kept. */
  ask(target: NodeTarget, identity: Identity | null, ask: Ask): Promise<Reply>
  /** Any call of the operator listener over loopback, its answer kept. */
  askOperators(ask: Ask): Promise<Reply>
}

/** With characters that every encoding writes in another way. */
const awkward = (): string => `whsec "${randomBytes(24).toString('base64')}" +/\\ &%`

export const openWorld = async (t: Scope): Promise<World> => {
  const root = tempFolder(t)
  const ledger = openLedger()
  const evidence = openEvidence(root)
  const at = (...parts: string[]): string => path.join(root, ...parts)
  const put = (file: string, content: string): string => {
    fs.mkdirSync(path.dirname(at(file)), { recursive: true, mode: 0o700 })
    fs.writeFileSync(at(file), content, { mode: 0o600 })
    return at(file)
  }

  const sealKey = randomBytes(32).toString('hex')
  ledger.learn('sealing key', 'plane', sealKey)
  const webhookSecret = awkward()
  ledger.learn('webhook secret', 'plane', webhookSecret)
  const webhookPath = randomBytes(24).toString('base64url')
  ledger.learn('webhook address', 'plane', webhookPath)
  const receiver = await startReceiver(t, webhookSecret)
  const files = {
    seal: put('etc/seal.key', `${sealKey}\n`),
    webhook: put('etc/webhook.secret', `${webhookSecret}\n`),
    ca: put('etc/receiver.pem', receiver.root),
    temporary: path.dirname(put('tmp/.keep', '')),
  }
  // Sixty processes are started here.
  const env = {
    TMPDIR: files.temporary,
    HOME: files.temporary,
    NODE_COMPILE_CACHE: compiledFolder(() => tempFolder(t)),
  }
  let plane = await startPlane(t, {
    data: at('data'),
    env: { ...env, MUSTER_ALERT_WEBHOOK: `https://localhost:${receiver.port}/hook/${webhookPath}` },
    args: [
      ...['--seal-key', files.seal, '--log-level', 'trace'],
      ...['--alert-webhook-secret-file', files.webhook, '--alert-webhook-ca', files.ca],
      ...['--alert-webhook-network', '127.0.0.0/8', '--alert-webhook-network', '::1/128'],
    ],
  })
  ledger.learn("administrator's key", 'admin', plane.adminKey)
  evidence.watch('the plane', plane)

  const folders = new Map<string, string>()
  const learn = (): void => {
    for (const [name, folder] of folders) {
      learnFromAgent(ledger, name, folder)
      learnFromOutputs(ledger, name, at('published', name))
    }
    learnFromPlane(ledger, plane.data, sealKey)
  }
  const muster: World['muster'] = async (args, options = {}) => {
    const ran = await runMuster(args, { ...options, env: { ...env, MUSTER_DATA: plane.data, ...options.env } })
    evidence.keep(`arguments of muster ${args.slice(0, 2).join(' ')}`, args.join('\0'))
    evidence.keep(`stdout of muster ${args.join(' ')}`, ran.stdout)
    evidence.keep(`stderr of muster ${args.join(' ')}`, ran.stderr)
    return ran
  }
  const kept = async (what: string, reply: Promise<Reply>): Promise<Reply> => {
    const got = await reply
    evidence.keep(`answer to ${what}`, JSON.stringify([got.status, got.headers, got.body]))
    return got
  }
  const world: World = {
    ...{ t, root, ledger, evidence, receiver, at, put, muster },
    plane: () => plane,
    async restartPlane() {
      plane = await plane.restart()
      evidence.watch('the plane, started again', plane)
      return plane
    },
    async invite(node, profile = 'gpu-cloud') {
      const { body } = await world.operate('POST', '/v1/tokens', { node, profile })
      ledger.learn('enrollment token', node, body.secret)
      return body.join
    },
    startAgent(name, options) {
      const state = at('agents', name)
      const agent = startAgent(t, {
        ...options,
        state,
        env: { ...env, ...options.env },
        args: ['--log-level', 'trace', ...(options.args ?? [])],
      })
      evidence.watch(`agent ${name}`, agent)
      if (!folders.has(name)) watchFolder(t, state, () => learnFromAgent(ledger, name, state))
      folders.set(name, state)
      return agent
    },
    look(last = false) {
      learn()
      if (last) learnDerivedTokens(ledger, plane.data, sealKey)
      evidence.look(last)
    },
    operate: (method, where, body) =>
      kept(`${method} ${where}`, plane.api(method as Parameters<Plane['api']>[0], where, body)),
    ask: (target, identity, { method = 'GET', ...ask }) =>
      kept(
        `${method} ${ask.path.slice(0, 16)}`,
        send(https.request({ ...tlsOptions(target, identity), agent: false, ...requestOf(method, ask) }), ask),
      ),
    askOperators: ({ method = 'GET', ...ask }) => {
      const { hostname, port } = new URL(plane.operatorUrl)
      return kept(
        `${method} ${ask.path.slice(0, 16)} of operators`,
        send(http.request({ hostname, port, agent: false, ...requestOf(method, ask) }), ask),
      )
    },
  }
  return world
}

const requestOf = (method: string, { path: where, headers = {}, body }: Ask) => {
  const json = typeof body === 'object' ? { 'content-type': 'application/json' } : {}
  return { method, path: where, timeout: 30_000, headers: { ...json, ...headers } }
}

const send = (request: http.ClientRequest, { body }: Ask): Promise<Reply> =>
  new Promise((resolve, reject) => {
    request.on('timeout', () => request.destroy(new Error('no answer')))
    request.on('error', reject)
    request.on('response', (response) => void readReply(response).then(resolve, reject))
    request.end(typeof body === 'object' ? JSON.stringify(body) : body)
  })

export const secretIn = (join: string): string => {
  const secret = /enroll_[A-Za-z0-9_-]{43}/.exec(join)?.[0]
  if (secret === undefined) throw new Error('there is no secret in what should be a join string')
  return secret
}

/** A key may be on the disk for a moment only; each time something changes there it is learned. */
const watchFolder = (t: Scope, folder: string, look: () => void): void => {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
  const watcher = fs.watch(folder, look)
  cleanup(t, () => watcher.close())
}

/** PEM of a certificate's key that comes with an image. */
export const newKeyPem = (): string => generateKey('p256').pkcs8Pem()
