// One call of an API, declared once: the plane binds a handler to it, clients call it, OpenAPI describes it. There is no
// way to declare one without saying who may call it.

import type { Static, TSchema } from 'typebox'
import type { Role } from '#domain/core/principal.ts'

export type Access =
  /** No credential asked for. */
  | 'anyone'
  /** A node, for itself: the `{id}` of the path has to be its own. */
  | 'node-itself'
  /** Any node with its certificate; a machine that has none yet, with an enrollment token as `Authorization: Bearer`. */
  | 'machine'
  /** A worker with its certificate. Where the path has a `:worker`, it has to be its own id. */
  | 'worker'
  /** An operator with at least this role. */
  | Role

export type Endpoint = {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** With `:name` for parameters. */
  readonly path: string
  readonly access: Access
  readonly summary: string
  /** Reports the state of the plane, so it is answered in every state. */
  readonly always?: true
  /**
   * A cut-off, so it is carried out in every standing, and also for an operator key that this process has looked up while the
   * database cannot be read (authn/operator-key.ts).
   */
  readonly cutOff?: true
  /** A node in quarantine may call it too, once a repair bundle has given it a certificate. */
  readonly inQuarantine?: true
  /** The path is taken over by the WebSocket channel instead of being answered. */
  readonly kind?: 'upgrade'
  /** It is answered with the bytes of a file, to HEAD too, and in part where a range is asked for. */
  readonly file?: { readonly contentType: string }
  /** In bytes, where a body may be longer than usual. Only of calls that need a credential, which is asked for first. */
  readonly largestBody?: number
  readonly params?: TSchema
  readonly query?: TSchema
  readonly body?: TSchema
  /** Left out where the answer is no JSON. */
  readonly answer?: TSchema
  /** It answers with 503 and the same body, not with a refusal, while the plane cannot do its work. */
  readonly mayBeUnready?: true
  /** For those who read the description. A test holds it against the schemas. */
  readonly example?: {
    /** What success looks like, where it is not 200. */
    readonly status?: 201
    readonly request?: object
    readonly answer?: object
  }
}

/** The calls of one noun, by what they do. */
export type Endpoints = Readonly<Record<string, Endpoint>>

/** Keeps what exactly was declared, so that callers and handlers are typed by it. */
export const endpoint = <const E extends Endpoint>(declared: E): E => declared

type Part<E extends Endpoint, P extends 'params' | 'query' | 'body', Otherwise> = E extends {
  readonly [key in P]: infer S extends TSchema
}
  ? Static<S>
  : Otherwise

export type ParamsOf<E extends Endpoint> = Part<E, 'params', Readonly<Record<never, never>>>
export type QueryOf<E extends Endpoint> = Part<E, 'query', Readonly<Record<never, never>>>
export type BodyOf<E extends Endpoint> = Part<E, 'body', Readonly<Record<never, never>>>
/** What is only sent may be read-only. */
export type Immutable<T> = T extends object ? { readonly [K in keyof T]: Immutable<T[K]> } : T

export type AnswerOf<E extends Endpoint> = E extends { readonly answer: infer S extends TSchema } ? Static<S> : unknown

/** The path of a call, with its parameters filled in. */
export const pathOf = ({ path }: Pick<Endpoint, 'path'>, params: object = {}): string => {
  const values: Readonly<Record<string, string>> = { ...params }
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
}
