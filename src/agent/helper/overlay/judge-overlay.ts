// Whether a statement about the overlay of this node is believed, and what of a request it lets the helper start. Facts in, verdict
// out. The functions are pure.

import { sha256Hex } from '#platform/bytes.ts'
import { verifySignature } from '#pki/keys.ts'
import type { ThisNode } from '#agent/helper/tasks/judge-statement.ts'
import type { OverlayStatement } from '#wire/core/overlay-statement.ts'
import { parseStatement } from '#wire/core/statement.ts'
import {
  inPlace,
  listedNameOfCheck,
  textOfCheck,
  textOfService,
  type CheckDefinition,
  type ServiceDefinition,
} from '#wire/fleet/overlay-definition.ts'
import { refuseOverlay, type OverlayRefusal } from './overlay-verbs.ts'

type Pins = {
  readonly node: ThisNode
  /** Statement keys: SubjectPublicKeyInfo, DER, base64. */
  readonly pinned: readonly string[]
}

export type OverlayFacts = Pins & {
  readonly text: string
  /** The highest epoch that a statement has named on this host; null: none was seen. */
  readonly epoch: number | null
  /** Those that were handed out and are still waited for. */
  readonly nonces: readonly string[]
}

type TakenOverlay = { readonly kind: 'taken'; readonly value: OverlayStatement }

/**
 * A nonce of this helper's is all that shows that a statement is new. No clock is asked: that of the host may be wrong by years, and
 * a statement that was taken holds until the next one, however long the plane is away.
 */
export const judgeOverlay = ({ text, epoch, nonces, ...pins }: OverlayFacts): TakenOverlay | OverlayRefusal => {
  const value = signedValue(text, pins)
  if ('fault' in value) return value
  if (!nonces.includes(value.nonce))
    return refuseOverlay('STATEMENT_REPLAYED', 'The statement answers a nonce that this helper does not wait for')
  if (epoch !== null && value.epoch < epoch)
    return refuseOverlay('STATEMENT_OLDER', `The statement is for epoch ${value.epoch}; ${epoch} was seen`)
  return { kind: 'taken', value }
}

/** `kept`: the text that was taken last; null: none. Verified again: root may have pinned other keys since. */
export const overlayInForce = (kept: string | null, pins: Pins): OverlayStatement | OverlayRefusal => {
  if (kept === null)
    return refuseOverlay(
      'STATEMENT_MISSING',
      'This helper has no statement of what the overlay names; its agent fetches one',
    )
  const value = signedValue(kept, pins)
  return 'fault' in value
    ? refuseOverlay('STATEMENT_MISSING', `The statement that was taken counts no more: ${value.why}`)
    : value
}

const signedValue = (text: string, { node, pinned }: Pins): OverlayStatement | OverlayRefusal => {
  const parsed = parseStatement('overlay', text)
  if (parsed === null) return refuseOverlay('STATEMENT_NOT_SIGNED', 'That is not a statement of an overlay')
  const { value, signed, signature } = parsed
  if (!pinned.some((spki) => verifySignature(Buffer.from(spki, 'base64'), signed, signature)))
    return refuseOverlay(
      'STATEMENT_NOT_SIGNED',
      'The statement is not signed by a statement key that this host has pinned',
    )
  return value.domain === node.domain && value.node === node.id
    ? value
    : refuseOverlay('STATEMENT_OF_ANOTHER', `The statement is for ${value.node} of ${value.domain}`)
}

/** Of a request: what the agent shows; left out by agents of 0.5. */
type Shown<D> = { readonly definition: D; readonly folder: string } | undefined

/** What the agent shows in the place of `{overlay}` is no folder that a helper puts there. */
export type UnsafeFolder = { readonly kind: 'folder-unsafe'; readonly why: string }

/**
 * The one thing in a command that the agent chooses. A shell, or another program that parses its words, would take anything else than
 * these characters for a command of its own, and `..` leads to another folder. As `working_directory` in agent.toml, but a name may
 * begin with one dot.
 */
const plainFolder = /^(?:\/\.?[A-Za-z0-9_@+-][A-Za-z0-9._@+-]*)*\/overlay\/current$/

const unsafeFolder: UnsafeFolder = {
  kind: 'folder-unsafe',
  why: 'What the agent shows for {overlay} is not a plain path: only letters, digits and . _ @ + - may be in the path of its state folder (--state)',
}

/** What is started in the place of what the agent asks for. */
type SignedService = {
  readonly arguments: string[]
  readonly environment: Record<string, string>
  readonly working_directory: string | null
  readonly restart: 'always' | 'on-failure' | 'never'
  readonly limits: {
    readonly memory_bytes: number | null
    readonly cpus: number | null
    readonly open_files: number | null
  }
}

/** `name`: of the request. */
export const signedService = (
  statement: OverlayStatement,
  name: string,
  shown: Shown<ServiceDefinition>,
): SignedService | OverlayRefusal | UnsafeFolder => {
  if (shown === undefined) return nothingShown
  const { definition, folder } = shown
  if (!plainFolder.test(folder)) return unsafeFolder
  const { command, terms } = definition
  if (definition.name !== name || !names(statement.services, name, textOfService(definition)))
    return notNamed(statement, 'service', name)
  const place = terms?.working_directory ?? null
  return {
    arguments: command.slice(1).map((word) => inPlace(word, folder)),
    environment: {
      MUSTER_OVERLAY: folder,
      MUSTER_VCLUSTER: statement.vcluster ?? '',
      MUSTER_NODE: statement.node,
      ...Object.fromEntries(
        Object.entries(terms?.environment ?? {}).map(([key, value]) => [key, inPlace(value, folder)]),
      ),
    },
    working_directory: place === null || place === '/' ? null : inPlace(place, folder),
    restart: terms?.restart ?? 'always',
    limits: {
      memory_bytes: terms?.memory_bytes ?? null,
      cpus: terms?.cpus ?? null,
      open_files: terms?.open_files ?? null,
    },
  }
}

/** `name`: of the request, as agent.toml lists it. The arguments that the check gets. */
export const signedCheck = (
  statement: OverlayStatement,
  name: string,
  shown: Shown<CheckDefinition>,
): { readonly arguments: string[] } | OverlayRefusal | UnsafeFolder => {
  if (shown === undefined) return nothingShown
  const { definition, folder } = shown
  if (!plainFolder.test(folder)) return unsafeFolder
  const isNamed = names(statement.checks, definition.name, textOfCheck(definition))
  if (listedNameOfCheck(definition) !== name || !isNamed) return notNamed(statement, 'check', name)
  return { arguments: definition.command.slice(1).map((word) => inPlace(word, folder)) }
}

const names = (listed: OverlayStatement['services'], name: string, text: string): boolean =>
  listed.some((one) => one.name === name && one.digest === sha256Hex(text))

const nothingShown = refuseOverlay(
  'STATEMENT_MISSING',
  'The agent shows no signed definition: this host has pinned statement keys, and needs an agent of 0.6',
)

const notNamed = ({ vcluster, vcluster_revision: revision }: OverlayStatement, kind: string, name: string) =>
  refuseOverlay(
    'NOT_IN_STATEMENT',
    `The statement about ${vcluster === null ? 'a node in no vCluster' : `revision ${revision} of ${vcluster}`} names no such ${kind} ${name}`,
  )
