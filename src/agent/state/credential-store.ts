// The file that keeps the credentials. It is replaced as a whole, so that a key is never beside another key's certificate.

import * as path from 'node:path'
import { Type, type Static } from 'typebox'
import { keyTypes } from '#domain/core/profile.ts'
import { makeFolder, readFileIfAny, removeFile, replaceFile } from '#platform/files.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { EnrollResponse } from '#wire/enrollment/enroll-api.ts'
import { IssuerRoots, RecoveryTrust } from '#wire/identity/identity-api.ts'
import { noCredentials, noIssuerRoots, type Credentials, type Generation, type KeyRequest } from './credentials.ts'
import { rootOfChain } from './trust.ts'

export type CredentialStore = {
  /** What was saved last; nothing saved is `noCredentials`. Throws DamagedCredentials for what it cannot read. */
  load(): Credentials
  /** Durable when it returns. When it throws, the old or the new credentials are there, whole. */
  save(credentials: Credentials): void
  /** Afterwards nothing of them is on the disk. */
  erase(): void
  /** A file that cannot be read is kept under another name, so that an operator can look at it or restore it. */
  setAside(): void
}

export class DamagedCredentials extends Error {}

export const identityFile = (stateFolder: string): string => path.join(stateFolder, 'identity.json')

const damagedFile = (stateFolder: string): string => `${identityFile(stateFolder)}.damaged`

export const fileCredentialStore = (stateFolder: string): CredentialStore => {
  const file = identityFile(stateFolder)
  return {
    load: () => {
      const text = readFileIfAny(file)
      return text === null ? noCredentials : parseCredentials(text, file)
    },
    save: (credentials) => {
      makeFolder(stateFolder, 0o700)
      replaceFile(file, JSON.stringify({ version, ...credentials }, null, 1) + '\n', 0o600)
    },
    erase: () => {
      if (readFileIfAny(damagedFile(stateFolder)) !== null) removeFile(damagedFile(stateFolder))
      if (readFileIfAny(file) === null && readFileIfAny(`${file}.new`) === null) return
      // A swap that was cut short leaves its half beside the file, keys and all.
      removeFile(`${file}.new`)
      removeFile(file)
    },
    setAside: () => {
      const text = readFileIfAny(file)
      if (text === null) return
      replaceFile(damagedFile(stateFolder), text, 0o600)
      removeFile(file)
    },
  }
}

/** For keys that must not reach a disk: a restart begins with nothing, and a file of former times is left alone. */
export const memoryCredentialStore: CredentialStore = {
  load: () => noCredentials,
  save: () => undefined,
  erase: () => undefined,
  setAside: () => undefined,
}

const version = 1
const text = Type.String({ maxLength: 256 * 1024 })
const whole = Type.Integer({ minimum: 0 })

const generation = Type.Object({
  keyPem: text,
  chainPem: text,
  // Agents before 0.4 leave it out.
  rootPem: Type.Optional(Type.Union([Type.Null(), text])),
  serial: text,
  proven: Type.Boolean(),
  issuedAtMs: whole,
  notAfterMs: whole,
})

const recovery = Type.Object({
  trust: RecoveryTrust,
  credential: Type.Union([
    Type.Object({ kind: Type.Literal('key'), keyType: Type.Enum([...keyTypes]), keyPem: text }),
    Type.Object({ kind: Type.Literal('bearer'), token: text }),
    Type.Object({ kind: Type.Literal('none') }),
  ]),
})

const requestedKey = Type.Object({ keyType: Type.Enum([...keyTypes]), keyPem: text })

const madeFor = Type.Object({
  join: text,
  machine: Type.Union([Type.Null(), text]),
  macs: Type.Array(text),
  serial: Type.Union([Type.Null(), text]),
})

const stored = Type.Object({
  version: Type.Literal(version),
  identity: Type.Union([
    Type.Null(),
    Type.Object({
      source: Type.Optional(Type.Enum(['plane', 'static', 'spire'])),
      nodeId: text,
      domain: text,
      epoch: whole,
      profile: EnrollResponse.properties.profile,
      endpoints: EnrollResponse.properties.endpoints,
      roots: Type.Array(text),
      trustRevision: whole,
      graceMs: whole,
      understands: Type.Array(text),
      // Agents before 0.4.0 leave it out.
      marked: Type.Optional(Type.Boolean()),
      origin: Type.Object({ url: text, rootFingerprint: text, usedSecretHash: Type.Union([Type.Null(), text]) }),
      // Older agents, which had no recovery, leave it out.
      counter: Type.Optional(Type.Union([Type.Null(), text])),
      recovery: Type.Optional(Type.Union([Type.Null(), recovery])),
      clockToleranceMs: Type.Optional(whole),
      withdrawnIssuers: Type.Optional(Type.Array(text)),
      // Agents before 0.7 leave it out.
      issuerRoots: Type.Optional(IssuerRoots),
      current: generation,
      previous: Type.Union([Type.Null(), generation]),
    }),
  ]),
  request: Type.Union([
    Type.Null(),
    Type.Object({
      purpose: Type.Union([
        Type.Object({ kind: Type.Literal('enroll') }),
        Type.Object({ kind: Type.Literal('renew'), serial: text }),
        Type.Object({
          kind: Type.Literal('recover'),
          epoch: Type.Union([Type.Null(), whole]),
          correlation: text,
        }),
      ]),
      keyType: Type.Enum([...keyTypes]),
      insteadOf: Type.Optional(Type.Union([Type.Null(), Type.Enum([...keyTypes])])),
      keyPem: text,
      csrPem: text,
      sinceMs: whole,
      recoveryKey: Type.Optional(Type.Union([Type.Null(), requestedKey])),
      madeFor: Type.Optional(Type.Union([Type.Null(), madeFor])),
    }),
  ]),
})

/** The error names the file and repeats nothing of it: there is a key inside. */
const parseCredentials = (content: string, file: string): Credentials => {
  const value = jsonOrNull(content)
  if (!matchesSchema(stored, value))
    throw new DamagedCredentials(`${file} is damaged or of another version of the agent`)
  const { identity } = value
  const kept = value.request
  const request = kept === null ? null : { ...kept, ...withDefaults(kept) }
  if (identity === null) return { identity, request }
  const { source = 'plane', counter = null, recovery = null, clockToleranceMs = 300_000 } = identity
  const { withdrawnIssuers = [], issuerRoots = noIssuerRoots, marked = false, roots } = identity
  const current = withRoot(identity.current, roots)
  const previous = identity.previous === null ? null : withRoot(identity.previous, roots)
  const filled = {
    source,
    counter,
    recovery,
    clockToleranceMs,
    withdrawnIssuers,
    issuerRoots,
    marked,
    current,
    previous,
  }
  return { identity: { ...identity, ...filled }, request }
}

/** Planes before 0.4 had one root above the certificate and trusted for the plane. */
const withRoot = (kept: Static<typeof generation>, roots: readonly string[]): Generation => ({
  ...kept,
  rootPem: kept.rootPem ?? rootOfChain(kept.chainPem, roots),
})

/** Older agents leave them out. */
const withDefaults = ({ insteadOf = null, recoveryKey = null, madeFor = null }: Partial<KeyRequest>) => ({
  ...{ insteadOf, recoveryKey, madeFor },
})

const jsonOrNull = (content: string): unknown => {
  try {
    return JSON.parse(content)
  } catch {
    return null
  }
}
