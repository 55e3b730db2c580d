// Gets and renews the certificate of a worker, and lays it down for the program beside it: key, certificate and roots change together.

import * as path from 'node:path'
import { makeCsr } from '#pki/csr.ts'
import { generateKey, loadPrivateKey, type PrivateKey } from '#pki/keys.ts'
import { allFromPem } from '#pki/pem.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { sha256Hex } from '#platform/bytes.ts'
import { replaceGeneration } from '#platform/file-generations.ts'
import { makeFolder, readFileIfAny, readShortFile, replaceFile } from '#platform/files.ts'
import type { HttpTarget } from '#platform/http-client.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodeOf, exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { pathOf, type BodyOf } from '#wire/core/endpoint.ts'
import { ErrorBody } from '#wire/core/error-body.ts'
import { workerApi, WorkerCertificate } from '#wire/workers/worker-api.ts'

export type WorkerPlace = {
  /** The node listener. */
  readonly url: string
  /** PEM of the roots that it is verified with at first; the plane's answers say how it is verified from then on. */
  readonly ca: string
  readonly tokenFile: string
  readonly folder: string
}

/** What lies in the folder. */
export type HeldCertificate = {
  readonly id: string
  readonly key: string
  readonly chain: string
  readonly roots: string
  readonly issuedAtMs: number
  readonly notAfterMs: number
}

const name = 'worker'
export const fileOf = (folder: string, file: 'key' | 'cert' | 'roots'): string => path.join(folder, name, `${file}.pem`)
const nextKeyFile = (folder: string): string => path.join(folder, 'next.key')

/** Null: there is none that could be used. */
export const heldIn = ({ folder }: WorkerPlace): HeldCertificate | null => {
  const [key, chain, roots] = (['key', 'cert', 'roots'] as const).map((file) => readFileIfAny(fileOf(folder, file)))
  const id = readFileIfAny(path.join(folder, name, 'id'))
  const leaf = typeof chain === 'string' ? leafOf(chain) : null
  if (typeof key !== 'string' || typeof chain !== 'string' || typeof roots !== 'string' || id === null || leaf === null)
    return null
  return { id: id.trim(), key, chain, roots, ...leaf }
}

const leafOf = (chain: string): Pick<HeldCertificate, 'issuedAtMs' | 'notAfterMs'> | null => {
  const [der] = allFromPem('CERTIFICATE', chain) ?? []
  const parsed = der === undefined ? null : parseCertificate(der)
  if (parsed === null || parsed.kind === 'malformed') return null
  return { issuedAtMs: parsed.notBeforeMs, notAfterMs: parsed.notAfterMs }
}

export const renewAtMs = ({ issuedAtMs, notAfterMs }: HeldCertificate): number =>
  issuedAtMs + (notAfterMs - issuedAtMs) / 2

/**
 * With the certificate that is held, while it is good; anew where there is none, or the plane no longer takes it. The token is read each
 * time: a projected one is replaced long before its end.
 */
export const obtainCertificate = async (cli: Cli, place: WorkerPlace): Promise<HeldCertificate> => {
  const held = heldIn(place)
  if (held === null || held.notAfterMs <= cli.clock.nowMs()) return ask(cli, place, null)
  try {
    return await ask(cli, place, held)
  } catch (error) {
    if (error instanceof Failure && noLongerTaken.has(error.code)) return ask(cli, place, null)
    throw error
  }
}

const noLongerTaken = new Set(['CLIENT_CERT_UNKNOWN', 'CLIENT_CERT_EXPIRED', 'CLIENT_CERT_DENIED', 'SERIAL_MISMATCH'])

const longestToken = 8192
const timeoutMs = 30_000
/** The program waits for it. */
const lookTimeoutMs = 5_000

/** `unasked`: no answer of the plane says so or the contrary. */
export type Standing =
  { readonly kind: 'taken' } | { readonly kind: 'refused' } | { readonly kind: 'unasked'; readonly why: string }

/** Whether the plane takes the certificate that is held. Changes nothing. */
export const standingOf = async (cli: Cli, place: WorkerPlace, held: HeldCertificate): Promise<Standing> => {
  const http = openFor(cli, place, held)
  try {
    const { status } = await http.send({
      method: workerApi.current.method,
      path: pathOf(workerApi.current, { worker: held.id }),
      headers: { accept: 'application/json' },
      ...{ body: null, timeoutMs: lookTimeoutMs, mostBytes: 64 * 1024 },
    })
    if (status === 200) return { kind: 'taken' }
    return status === 401 || status === 403
      ? { kind: 'refused' }
      : { kind: 'unasked', why: `it answered HTTP ${status}` }
  } catch (error) {
    return { kind: 'unasked', why: error instanceof Error ? error.message : String(error) }
  } finally {
    http.close()
  }
}

const openFor = (cli: Cli, place: WorkerPlace, held: HeldCertificate | null) => {
  const target = { ...addressOf(place.url), ca: held === null ? place.ca : `${place.ca}\n${held.roots}` }
  return cli.openHttp({ ...target, ...(held === null ? {} : { identity: { key: held.key, cert: held.chain } }) })
}

const ask = async (cli: Cli, place: WorkerPlace, held: HeldCertificate | null): Promise<HeldCertificate> => {
  const token = tokenIn(place.tokenFile)
  const key = keyFor(place, token)
  const http = openFor(cli, place, held)
  const call = held === null ? workerApi.enroll : workerApi.renew
  try {
    const { status, body } = await http.send({
      method: call.method,
      path: pathOf(call, held === null ? {} : { worker: held.id }),
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify({ token, csr: makeCsr(key, 'worker') } satisfies BodyOf<typeof workerApi.enroll>),
      timeoutMs,
      mostBytes: 256 * 1024,
    })
    return keep(place, key, answerIn(status, body, token))
  } finally {
    http.close()
  }
}

const tokenIn = (file: string): string => {
  const read = readShortFile(file, longestToken)
  if (read === 'too-long') throw usageFailure(`${file} is too long for a token.`)
  const token = read === null ? '' : read.text.trim()
  if (token === '') throw usageFailure(`There is no token in ${file}.`, 'Mount a projected service-account token there')
  return token
}

/**
 * A token holds for the first key that it is brought with, so that the key stays as long as the token does. It is durable before it is
 * sent: a process that is started again asks with the same one.
 */
const keyFor = ({ folder }: WorkerPlace, token: string): PrivateKey => {
  const hash = sha256Hex(token)
  const [made = '', ...pem] = (readFileIfAny(nextKeyFile(folder)) ?? '').split('\n')
  if (made === hash) return loadPrivateKey(pem.join('\n'))
  const key = generateKey('ed25519')
  makeFolder(folder, 0o700)
  // With another token another key: what a thief of the folder has is of no use after the next renewal.
  replaceFile(nextKeyFile(folder), `${hash}\n${key.pkcs8Pem()}`, 0o600)
  return key
}

const addressOf = (url: string): Omit<Extract<HttpTarget, { kind: 'https' }>, 'ca'> => {
  const parsed = URL.canParse(url) ? new URL(url) : null
  if (parsed?.protocol !== 'https:') throw usageFailure(`--plane ${url} is not https://HOST:PORT.`)
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1')
  return { kind: 'https', host, port: parsed.port === '' ? 443 : Number(parsed.port) }
}

const answerIn = (status: number, text: string, token: string): WorkerCertificate => {
  const body = jsonIn(text)
  if (status === 200 && matchesSchema(WorkerCertificate, body)) return body
  if (matchesSchema(ErrorBody, body)) {
    const { code, message, next, retry_after_ms: retryAfterMs } = body
    const detail = code === 'WORKER_TOKEN_INVALID' ? withClaims(body.detail, token) : body.detail
    throw new Failure({ exit: exitCodeOf(code, status), code, sentence: message, detail, next, retryAfterMs })
  }
  throw new Failure({ exit: exitCodes.fault, code: 'FOREIGN_ANSWER', sentence: `The plane answered HTTP ${status}.` })
}

/** What the plane compares with its worker issuers; it does not say itself which of them differs. */
const withClaims = (detail: string | null, token: string): string => {
  const claims = jsonIn(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  const { iss, aud, sub } = (typeof claims === 'object' && claims !== null ? claims : {}) as Record<string, unknown>
  const said = Object.entries({ iss, aud, sub }).map(
    ([name, value]) => `${name} ${value === undefined ? 'missing' : JSON.stringify(value)}`,
  )
  return `${detail === null ? '' : `${detail}; `}the token has ${said.join(', ').slice(0, longestClaims)}`
}

const longestClaims = 512

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const keep = (place: WorkerPlace, key: PrivateKey, answer: WorkerCertificate): HeldCertificate => {
  const { worker_id: id, certificate_chain: chain } = answer
  const leaf = leafOf(chain)
  if (leaf === null)
    throw new Failure({ exit: exitCodes.fault, code: 'FOREIGN_ANSWER', sentence: 'The plane sent no certificate.' })
  const roots = answer.roots.join('')
  const owned = { owner: null }
  replaceGeneration(place.folder, name, [
    { name: 'key.pem', mode: 0o600, content: key.pkcs8Pem(), ...owned },
    { name: 'cert.pem', mode: 0o644, content: chain, ...owned },
    { name: 'roots.pem', mode: 0o644, content: roots, ...owned },
    { name: 'id', mode: 0o644, content: `${id}\n`, ...owned },
  ])
  return { id, key: key.pkcs8Pem(), chain, roots, ...leaf }
}
