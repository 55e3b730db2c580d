// What was found where, and whether it belongs there.

import { secretKinds, type Secret, type SecretKind } from './canary-ledger.ts'
import type { Seen } from './canary-evidence.ts'
import type { Form, Fragment } from './secret-forms.ts'
import { scanFor } from './secret-scan.ts'

/**
 * A place that is meant to hold secrets of a kind. `{owner}` stands for whose it is, `*` for anything. `until`: only as
 * long as it is not used; at the end it has to be gone. `folder`: others go through it to what is beside the secret.
 */
export type Meant =
  string | { readonly until: 'used'; readonly place: string } | { readonly folder: 'for all'; readonly place: string }

export type MeantPlaces = Readonly<Record<SecretKind, readonly Meant[]>>

export type Finding = {
  readonly secret: Secret
  readonly form: Form | 'a shape of secrets'
  readonly place: string
  /** What stands before it, to find out who wrote it. */
  readonly before: string
}

export type Verdict = {
  readonly findings: readonly Finding[]
  /** Files that hold a secret rightly, and that others than their owner may get at. */
  readonly open: readonly string[]
  /** Places of the table that held nothing: they would excuse a leak that nobody has thought about. */
  readonly idle: readonly string[]
}

export const judge = (
  seen: readonly Seen[],
  secrets: ReadonlyMap<Secret, readonly Fragment[]>,
  meant: MeantPlaces,
): Verdict => {
  const scan = scanFor(secrets)
  const findings: Finding[] = []
  const open = new Set<string>()
  const used = new Set<string>()
  for (const { place, bytes, last, modes } of seen) {
    for (const { secret, form, at } of scan(bytes)) {
      const row = meant[secret.kind].find((one) => allows(one, secret.owner, place, last))
      if (row === undefined) {
        const before = bytes.subarray(Math.max(0, at - 120), at).toString('latin1')
        findings.push({ secret, form, place, before })
        continue
      }
      used.add(`${secret.kind}: ${placeOf(row)}`)
      if (modes !== null && (modesOf(row, modes) & 0o077) !== 0) open.add(place)
    }
    findings.push(...strangersIn(bytes, place, meant))
  }
  const rows = secretKinds.flatMap((kind) => meant[kind].map((row) => `${kind}: ${placeOf(row)}`))
  return { findings, open: [...open], idle: rows.filter((row) => !used.has(row)) }
}

const modesOf = (row: Meant, { file, folder }: NonNullable<Seen['modes']>): number =>
  typeof row === 'object' && 'folder' in row ? file : file | folder

const placeOf = (row: Meant): string => (typeof row === 'string' ? row : row.place)

const allows = (row: Meant, owner: string | null, place: string, last: boolean): boolean => {
  if (typeof row === 'object' && 'until' in row && last) return false
  const pattern = placeOf(row)
    .split(/(\{owner\}|\*)/)
    .map((part) =>
      part === '*' || (part === '{owner}' && owner === null)
        ? '.*'
        : part === '{owner}'
          ? escaped(owner ?? '')
          : escaped(part),
    )
    .join('')
  return new RegExp(`^${pattern}$`, 's').test(place)
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

const shapes = /(?:enroll|recover|repair|muster_key)_[A-Za-z0-9_-]{43}|-----BEGIN [A-Z ]*PRIVATE KEY-----/g

/** Secrets that were never learned still look like secrets. */
const strangersIn = (bytes: Buffer, place: string, meant: MeantPlaces): readonly Finding[] => {
  if (secretKinds.some((kind) => meant[kind].some((row) => allows(row, null, place, false)))) return []
  const text = bytes.toString('latin1')
  const secret = { kind: 'out of place', owner: 'nobody knows' } as const
  return [...text.matchAll(shapes)].slice(0, 1).map(({ index }) => ({
    secret,
    form: 'a shape of secrets',
    place,
    before: text.slice(Math.max(0, index - 120), index),
  }))
}
