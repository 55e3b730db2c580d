// What an agent reports over its channel: the read-model of 003's operator evidence. Bounded, no secrets.

import { Type, type Static } from 'typebox'
import { recordOf } from '#platform/json-schema.ts'
import { rehearsalSteps, failureClasses } from '#domain/core/node.ts'
import { reportedConditions } from '#domain/node/reported-conditions.ts'
import { closed, orNull } from '#wire/core/shapes.ts'

const time = Type.String({ maxLength: 32 })
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const short = Type.String({ maxLength: 64 })
/** Agents of 0.2.0 know nothing of the last class and leave it out. */
const byClass = Type.Object(
  {
    endpoint_unreachable: count,
    server_tls_untrusted: count,
    cert_expired: count,
    identity_revoked_or_fenced: count,
    endpoint_profile_drift: count,
    recovery_enrollment_blocked: count,
    disk_full: count,
    clock_skew: count,
    credentials_damaged: Type.Optional(count),
  },
  closed,
)

const Failure = Type.Object(
  { at: time, class: Type.Enum([...failureClasses]), code: short, text: Type.String({ maxLength: 512 }) },
  closed,
)

/** One line of the causal chain the agent keeps; the newest last. */
export const StoryLine = Type.Object(
  {
    at: time,
    place: short,
    /** What happened: a trouble began, is over, something was tried. */
    event: Type.Union([
      Type.Literal('failed'),
      Type.Literal('tried'),
      Type.Literal('succeeded'),
      Type.Literal('changed'),
    ]),
    class: orNull(Type.Enum([...failureClasses])),
    code: short,
    text: Type.String({ maxLength: 512 }),
    next: Type.String({ maxLength: 512 }),
    times: count,
    correlation: orNull(short),
  },
  closed,
)
export type StoryLine = Static<typeof StoryLine>

/** What a plane offers in its hello: it takes `connection` in reports. */
export const connectionCapability = 'report_connection'

const urls = Type.Array(Type.String({ maxLength: 512 }), { maxItems: 8 })
const fingerprint = Type.String({ pattern: '^[0-9a-f]{64}$' })
const fingerprints = Type.Array(fingerprint, { maxItems: 32 })

/** Which plane the node faces: by which addresses, and how it knows it. Roots are SHA-256, hex. */
export const Connection = Type.Object(
  {
    runtime: urls,
    recovery: urls,
    /** The address of the open channel. */
    channel: orNull(Type.String({ maxLength: 512 })),
    /** What it verifies the plane by. */
    plane_roots: fingerprints,
    recovery_roots: fingerprints,
    /** What its own certificate hangs under. */
    certificate_root: orNull(fingerprint),
  },
  closed,
)

export type Connection = Static<typeof Connection>

export const ReportBody = Type.Object(
  {
    /** Of the process; see AgentEvidence. Numbers count up from 1 in it. */
    instance: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$' }),
    number: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    at: time,
    /** Where the identity in use comes from. */
    source: Type.Union([Type.Literal('plane'), Type.Literal('static'), Type.Literal('spire')]),
    certificate: Type.Object({ serial: Type.String({ maxLength: 64 }), not_after: time }, closed),
    clock_skew_ms: Type.Integer(),
    endpoint_set: Type.Object(
      { id: Type.String({ maxLength: 128 }), revision: Type.Integer(), drift_total: count },
      closed,
    ),
    /** Only to a plane that offers it. */
    connection: Type.Optional(Connection),
    last_exchange: orNull(time),
    renewal: Type.Object(
      { attempts: count, failures: byClass, last_attempt: orNull(time), last_failure: orNull(Failure) },
      closed,
    ),
    recovery: Type.Object(
      {
        attempts: byClass,
        successes: count,
        failures: byClass,
        last_attempt: orNull(time),
        last_failure: orNull(Failure),
      },
      closed,
    ),
    rehearsal: orNull(
      Type.Object(
        {
          at: time,
          outcome: Type.Union([Type.Literal('passed'), Type.Literal('failed')]),
          step: orNull(Type.Enum([...rehearsalSteps])),
          why: orNull(short),
        },
        closed,
      ),
    ),
    storage: Type.Object(
      {
        identity_writable: Type.Boolean(),
        diagnostics_writable: Type.Boolean(),
        reserve: Type.Boolean(),
        /** Of the last write that failed: ENOSPC, EROFS, ... */
        errno: orNull(short),
        free_bytes: Type.Object({ identity: count, diagnostic: count, retry: count, runtime: count }, closed),
        diagnostic_write_failures: recordOf(Type.String({ pattern: '^[A-Za-z0-9_]{1,32}$' }), count, {
          maxProperties: 16,
        }),
        dropped_records: Type.Array(Type.Object({ source: short, reason: short, count }, closed), { maxItems: 16 }),
      },
      closed,
    ),
    conditions: Type.Array(
      Type.Object(
        {
          name: Type.Enum([...reportedConditions]),
          since: time,
          reason: Type.String({ maxLength: 256 }),
          evidence: recordOf(
            Type.String({ pattern: '^[a-z0-9_]{1,40}$' }),
            Type.Union([Type.String({ maxLength: 128 }), Type.Number(), Type.Null()]),
            { maxProperties: 8 },
          ),
        },
        closed,
      ),
      { maxItems: reportedConditions.length },
    ),
    story: Type.Array(StoryLine, { maxItems: 16 }),
  },
  closed,
)
export type ReportBody = Static<typeof ReportBody>
