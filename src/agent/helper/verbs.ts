// What the agent may ask of the helper: a closed list of verbs, each with its request and its answer, a line of JSON each. The
// helper takes none of it on trust: what is allowed is in agent.toml, and what it writes it verifies.

import { Type, type Static, type TSchema } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { closed, oneOf, orNull, text } from '#wire/core/shapes.ts'
import {
  longestProgramList,
  longestProgramLists,
  mostProgramLists,
  OutputFilesBody,
  OutputName,
} from '#wire/programs/programs-api.ts'
import { CheckDefinition, ServiceDefinition } from '#wire/fleet/overlay-definition.ts'
import { overlayVerbs, shownDefinition } from './overlay/overlay-verbs.ts'
import { taskVerbs } from './tasks/task-verbs.ts'

export const defaultSocket = '/run/muster-agent-helper/socket'

/** A whole generation: all lists that an agent takes, and less than a MiB of keys and certificates. */
export const longestRequest = longestProgramLists + (1 << 20)
export const longestAnswer = 256 * 1024

const pem = (most: number) => Type.String({ minLength: 1, maxLength: most })

const ListedName = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$' })
// A program cannot be given a NUL.
const Word = Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' })
const Words = Type.Array(Word, { maxItems: 64 })
const Environment = recordOf(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$' }), Word, { maxProperties: 64 })

const Limits = Type.Object(
  {
    memory_bytes: orNull(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    cpus: orNull(Type.Number({ minimum: 0.01, maximum: 4096 })),
    open_files: orNull(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  },
  closed,
)

const ServiceState = Type.Object({
  name: Type.String(),
  /** What it was started with. */
  digest: Type.String(),
  state: oneOf(['running', 'ended'] as const),
  /** By the helper or by systemd, since it was started as this one. */
  restarts: Type.Integer(),
  pid: orNull(Type.Integer()),
  /** How it ended last; null: it has not. */
  ended: orNull(Type.String()),
  /** What it wrote last. */
  lines: Type.Array(Type.String()),
  /** Limits that cannot be set here; left out: all of them are. */
  unapplied: Type.Optional(Type.Array(Type.String())),
})
export type ServiceState = Static<typeof ServiceState>

export const verbs = {
  /** What is allowed here, so that an agent can say which features it lacks. */
  hello: {
    request: Type.Object({}, closed),
    answer: Type.Object({
      version: Type.String(),
      /** It was not started as root, and can do what its user can. */
      by_hand: Type.Boolean(),
      /** Those for which agent.toml lists something. */
      verbs: Type.Array(Type.String()),
      node: orNull(Type.Object({ domain: Type.String(), id: Type.String() })),
      outputs: Type.Array(
        Type.Object({
          directory: Type.String(),
          names: orNull(Type.Array(Type.String())),
          fault: orNull(Type.String()),
        }),
      ),
      reloads: Type.Array(Type.String()),
      services: Type.Array(Type.String()),
      checks: Type.Array(Type.String()),
      /** Whether services and checks take a statement of the plane. Left out by helpers of 0.5, and while agent.toml is not valid. */
      overlays: Type.Optional(oneOf(['signed', 'unsigned'] as const)),
      /** Why nothing is allowed; null: nothing is wrong with agent.toml. */
      fault: orNull(Type.String()),
    }),
  },
  'output.write': {
    request: Type.Object(
      {
        name: OutputName,
        files: OutputFilesBody,
        key: pem(16_384),
        /** The leaf first. */
        chain: pem(65_536),
        /** Of these, those are written that the helper has pinned. */
        roots: pem(262_144),
        /** One for each authority of the chain, and for others below the pinned roots. */
        lists: Type.Array(pem(longestProgramList), { minItems: 1, maxItems: mostProgramLists }),
        /** Those others; empty where there are none. */
        authorities: Type.String({ maxLength: 262_144 }),
      },
      closed,
    ),
    answer: Type.Object({
      /** What programs read; the same over all generations. */
      place: Type.String(),
      serial: Type.String(),
      /** Roots of the plane that this host has not pinned. */
      roots_left_out: Type.Integer(),
      /** False: it is in place, and the disk has not confirmed that. */
      durable: Type.Boolean(),
    }),
  },
  /** From a directory that agent.toml lists. Also where there is none. */
  'output.remove': {
    request: Type.Object({ name: OutputName, directory: Type.String({ maxLength: 255 }) }, closed),
    answer: Type.Object({}),
  },
  reload: {
    request: Type.Object({ name: ListedName }, closed),
    answer: Type.Object({}),
  },
  'service.start': {
    request: Type.Object(
      {
        name: ListedName,
        digest: Type.String({ pattern: '^[0-9a-f]{8,64}$' }),
        arguments: Words,
        environment: Environment,
        working_directory: orNull(Type.String({ pattern: '^/[A-Za-z0-9._@+/-]*$', maxLength: 255 })),
        restart: oneOf(['always', 'on-failure', 'never'] as const),
        /** Left out: none. They only take from the service, so agent.toml need not list them. */
        limits: Type.Optional(Limits),
        /** Where the host asks for a statement, what is started comes from here, and from nothing above but the name and the digest. */
        overlay: Type.Optional(shownDefinition(ServiceDefinition)),
      },
      closed,
    ),
    /** `kept`: it runs as this one already. */
    answer: Type.Object({ outcome: oneOf(['started', 'kept'] as const) }),
  },
  'service.stop': {
    request: Type.Object({ name: ListedName }, closed),
    answer: Type.Object({}),
  },
  'service.status': {
    request: Type.Object({}, closed),
    answer: Type.Object({ services: Type.Array(ServiceState) }),
  },
  'check.run': {
    request: Type.Object(
      { name: ListedName, arguments: Words, overlay: Type.Optional(shownDefinition(CheckDefinition)) },
      closed,
    ),
    answer: Type.Object({
      /** Null: it was ended by a signal, or could not be started. */
      exit_code: orNull(Type.Integer()),
      timed_out: Type.Boolean(),
      /** The last line it wrote; `how`: in words. */
      line: orNull(text(256)),
      how: Type.String(),
    }),
  },
  ...overlayVerbs,
  ...taskVerbs,
} as const satisfies Record<string, { readonly request: TSchema; readonly answer: TSchema }>

export type Verb = keyof typeof verbs
export type RequestOf<V extends Verb> = Static<(typeof verbs)[V]['request']>
export type AnswerOf<V extends Verb> = Static<(typeof verbs)[V]['answer']>

export const isVerb = (name: string): name is Verb => Object.hasOwn(verbs, name)

export const Request = Type.Object(
  { id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), verb: text(32), body: Type.Unknown() },
  closed,
)

export const helperCodes = [
  /** Not JSON, or not a request. */
  'BAD_REQUEST',
  'UNKNOWN_VERB',
  'TOO_LONG',
  'BUSY',
  /** agent.toml does not list it. */
  'NOT_ALLOWED',
  /** agent.toml or the file with the roots cannot be read, is wrong, or may be changed by others. */
  'CONFIG_INVALID',
  /** A component of the path may be changed by others, is a link, or is missing. */
  'PATH_UNSAFE',
  /** Not below a pinned root, not this node's, not this output's, or for another key. */
  'LEAF_REFUSED',
  /** Missing, or not signed by an authority below a pinned root. */
  'LIST_REFUSED',
  'LIST_OLDER',
  /** Something else has the name of the output. */
  'PLACE_TAKEN',
  'DISK_FULL',
  /** The system refused it otherwise. */
  'NOT_DONE',
  /** The program ended with a failure, or could not be started. */
  'PROGRAM_FAILED',
  'TIMED_OUT',
  /** The message begins with one of the faults of tasks (`readRefusal`). */
  'TASK_REFUSED',
  /** What an overlay names is not started; the message begins with one of the faults of overlays (`overlayFaultIn`). */
  'STATEMENT_REFUSED',
] as const
export type HelperCode = (typeof helperCodes)[number]

export type Refused = { readonly kind: 'refused'; readonly code: HelperCode; readonly message: string }

export const refused = (code: HelperCode, message: string): Refused => ({ kind: 'refused', code, message })

/** `id`: of the request; null where it could not be read. */
export const Reply = Type.Union([
  Type.Object({ id: Type.Integer(), answer: Type.Unknown() }),
  Type.Object({
    id: orNull(Type.Integer()),
    refused: Type.Object({ code: Type.String({ maxLength: 64 }), message: Type.String({ maxLength: 1024 }) }),
  }),
])
