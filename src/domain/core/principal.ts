// Who a request is from, once proven. Authentication ends in one of these; nothing after it looks at a certificate.

import type { IssuerId, NodeId } from './node.ts'

export const roles = ['viewer', 'operator', 'platform-admin'] as const
export type Role = (typeof roles)[number]

export type Principal = Anonymous | TokenPrincipal | NodePrincipal | WorkerPrincipal | OperatorPrincipal

export type Anonymous = { readonly kind: 'anonymous'; readonly source: string }

/** A machine that has no identity yet and brings an enrollment token that it could enroll with now. */
export type TokenPrincipal = {
  readonly kind: 'token'
  /** Of the token, never its secret. */
  readonly id: string
  /** The node it was made for; null: a token of the domain. */
  readonly node: NodeId | null
  readonly expiresAtMs: number
  readonly source: string
}

export type NodePrincipal = {
  readonly kind: 'node'
  readonly id: NodeId
  readonly epoch: number
  readonly credential: {
    readonly by: 'certificate'
    readonly issuer: IssuerId
    readonly serial: string
    /** SHA-256 of its key, hex: a key can be banned with another node that has the same one. */
    readonly spki: string
  }
  readonly notAfterMs: number
  /** In quarantine after a repair: it may show evidence, and nothing else. */
  readonly evidenceOnly: boolean
  /** Its certificate has been replaced, and drains: a process that was never seen with it is a copy. */
  readonly draining?: true
  readonly source: string
}

/** A program that queues tasks (ruling 26). What it may queue is up to its issuer, and is read with every call. */
export type WorkerPrincipal = {
  readonly kind: 'worker'
  readonly id: string
  /** The name of its worker issuer. */
  readonly issuer: string
  readonly credential: NodePrincipal['credential']
  readonly notAfterMs: number
  readonly source: string
}

/** Neither has a dot. */
export const workerIdOf = (issuer: string, instance: string): string => `${issuer}.${instance}`

export const issuerInId = (id: string): string => id.slice(0, id.indexOf('.'))

export type OperatorPrincipal = {
  readonly kind: 'operator'
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly credential: { readonly by: 'operator-key' }
  readonly source: string
}

/** Each role may do all that the ones before it may. */
export const roleAllows = (has: Role, needs: Role): boolean => roles.indexOf(has) >= roles.indexOf(needs)

/** How a principal is named in the journal. */
export const actorOf = (principal: Principal): string => {
  switch (principal.kind) {
    case 'anonymous':
      return 'anonymous'
    case 'token':
      return `token:${principal.id}`
    case 'node':
      return `node:${principal.id}`
    case 'worker':
      return `worker:${principal.id}`
    case 'operator':
      return `operator:${principal.name}`
  }
}

export type OperatorKey = {
  readonly id: string
  readonly name: string
  readonly role: Role
  /** SHA-256 of the key, hex; also its key in the store. */
  readonly hash: string
  readonly createdBy: string
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  /** From then on it grants nothing; null: it has no end. */
  readonly expiresAtMs: number | null
  /** Over all of the above, under a key the database does not have (operator-key-seal.ts). A release before 0.2.1 wrote none. */
  readonly mac?: string
}

const fromSource = 'from '

/** Names the process of a long-poll without evidence, whose calls have nothing in common but their address. No instance looks like it. */
export const sourceProcess = (source: string): string => `${fromSource}${source}`

export const isSourceProcess = (process: string): boolean => process.startsWith(fromSource)
