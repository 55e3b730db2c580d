// A declaration of wire/ with the handler that answers it. Handlers are typed by their declaration: neither a declaration
// without a handler nor a handler without a declaration compiles, and a test walks them all.

import type { Attribution } from '#domain/core/change.ts'
import {
  actorOf,
  type NodePrincipal,
  type OperatorPrincipal,
  type Principal,
  type TokenPrincipal,
  type WorkerPrincipal,
} from '#domain/core/principal.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { HttpResponse } from '#platform/http-server.ts'
import type { SendOutcome } from '#platform/send-bytes.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import type { AnswerOf, BodyOf, Endpoint, Endpoints, Immutable, ParamsOf, QueryOf } from '#wire/core/endpoint.ts'

export type Route = Endpoint & { handle(call: Call): Promise<Answer | FileAnswer | Refusal> }

export type Call = {
  readonly principal: Principal
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  readonly correlation: string
  /** What the calling agent says of its process and machine; null from those that say nothing. */
  readonly evidence: AgentEvidence | null
}

/** A call as its handler sees it: already checked against the schemas of the declaration, by a caller who may. */
export type CallOf<E extends Endpoint> = Pick<Call, 'correlation' | 'evidence'> & {
  readonly principal: PrincipalOf<E['access']>
  readonly params: ParamsOf<E>
  readonly query: QueryOf<E>
  readonly body: BodyOf<E>
}

type PrincipalOf<A extends Endpoint['access']> = A extends 'anyone'
  ? Principal
  : A extends 'node-itself'
    ? NodePrincipal
    : A extends 'machine'
      ? NodePrincipal | TokenPrincipal
      : A extends 'worker'
        ? WorkerPrincipal
        : OperatorPrincipal

export type Answer<T = unknown> = {
  readonly kind: 'answer'
  /** 503: not a refusal, but the plane saying that it is not ready. */
  readonly status: 200 | 201 | 503
  /** An object is sent as JSON; text, bytes and pieces of text as they are, under `contentType`. Pieces are asked for as they are read. */
  readonly body: T & (object | string | Uint8Array)
  readonly contentType?: string
  /** Names the body, so that a caller that has it already is not sent it again. */
  readonly etag?: string
}

export const answer = <T extends object | string>(body: T, status: Answer['status'] = 200): Answer<T> => ({
  kind: 'answer',
  status,
  body,
})

/** A file that is sent as it is, whole or a range of it (send-file.ts). */
export type FileAnswer<T extends string = string> = {
  readonly kind: 'file'
  /** That of the declaration. */
  readonly contentType: T
  /** Strong: names these bytes and no others. */
  readonly etag: string
  readonly bytes: number
  /** Called when bytes of it are to be sent, and for nothing else. */
  begin(): Promise<FileSending | Refusal>
}

export type FileSending = {
  readonly kind: 'sending'
  /** Called once. Writes the bytes from `from` to the one before `end` behind the headers, and never rejects. */
  send(response: HttpResponse, from: number, end: number): Promise<SendOutcome>
}

type HandlerAnswer<E extends Endpoint> = E extends { readonly file: { readonly contentType: infer T extends string } }
  ? FileAnswer<T>
  : Answer<Immutable<AnswerOf<E>>>

type Handlers<G extends Endpoints> = {
  readonly [K in keyof G]: (call: CallOf<G[K]>) => Promise<HandlerAnswer<G[K]> | Refusal>
}

export const serve = <const G extends Endpoints>(endpoints: G, handlers: Handlers<G>): readonly Route[] => {
  const undeclared = Object.keys(handlers).find((name) => !Object.hasOwn(endpoints, name))
  if (undeclared !== undefined) throw new Error(`nothing declares what ${undeclared} handles`)
  return Object.entries(endpoints).map(([name, declared]) => {
    const handle = handlers[name]
    if (handle === undefined) throw new Error(`${declared.method} ${declared.path} has no handler`)
    // The schemas of the declaration, and `authorise`, have made the call what the handler takes.
    return { ...declared, handle: (call) => handle(call as CallOf<G[string]>) }
  })
}

/** In whose name a change is decided. */
export const attributionOf = ({ principal, correlation }: Pick<Call, 'principal' | 'correlation'>): Attribution => ({
  actor: actorOf(principal),
  source: principal.source,
  correlation,
})
