// Whom a profile, an output or a worker issuer names to sign: the built-in authority, or an outside issuer that is able to.

import { durationWords } from '#domain/core/in-words.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { readOf, type Read, type Row, type RowTypes } from '#domain/core/change.ts'
import { builtIn, type OutsideIssuer } from './outside-issuer.ts'

/** Vault has a role for each: a profile by its name, and these. No name has a colon. */
export const outputKind = (output: string): string => `output:${output}`
export const workerKind = (workerIssuer: string): string => `worker:${workerIssuer}`

/** `*`, `output:*` and `worker:*` stand for all others of their sort. Null: none is named. */
export const roleFor = (roles: Readonly<Record<string, string>>, kind: string): string | null => {
  const others = `${kind.slice(0, kind.indexOf(':') + 1)}*`
  return [kind, others].flatMap((one) => (Object.hasOwn(roles, one) ? (roles[one] ?? []) : []))[0] ?? null
}

/** What somebody wants signed there. */
export type NamedIssuer = {
  readonly issuer: string
  readonly kind: string
  readonly lifetimeMs: number
  /** In words: `profile edge`. */
  readonly what: string
  /** The option of `issuer test` that tests it. */
  readonly option: string
}

/** Null: it may be named, and gives what is asked for. `issuer`: null where there is none of that name. */
export const unfitToSign = (named: NamedIssuer, issuer: OutsideIssuer | null): Refusal | null => {
  if (named.issuer === builtIn) return null
  if (issuer === null || issuer.state.kind === 'retired') return refuse('OUTSIDE_ISSUER_NOT_FOUND', named.issuer)
  const { name, abilities, access } = issuer
  if (issuer.forged) return refuse('ISSUER_ROW_FORGED', name)
  if (issuer.state.kind === 'disabled')
    return refuse('ISSUER_NOT_READY', `${name} is disabled: muster issuer enable ${name}`)
  if (abilities === null) return refuse('ISSUER_NOT_READY', `${name} has not passed a test`)
  if (access.kind === 'vault' && roleFor(access.roles, named.kind) === null)
    return refuse(
      'ISSUER_NOT_READY',
      `${name} has no role for ${named.what}: muster issuer set ${name} --role ${named.kind}=ROLE`,
    )
  if (named.lifetimeMs > abilities.longestMs)
    return refuse(
      'ISSUER_NOT_READY',
      `${name} was tested for ${durationWords(abilities.longestMs)} at most: muster issuer test ${name} ${named.option} --lifetime ${named.lifetimeMs}ms`,
    )
  return null
}

/** What a change relies on that names them; refused where one of them cannot sign what is asked of it. */
export const signedByThem = (
  named: readonly NamedIssuer[],
  issuers: readonly Row<OutsideIssuer>[],
): readonly Read[] | Refusal => {
  const rows = new Map<string, Row<OutsideIssuer>>()
  for (const one of named) {
    if (one.issuer === builtIn) continue
    const row = issuers.find(({ value }) => value.name === one.issuer) ?? null
    const unfit = unfitToSign(one, row?.value ?? null)
    if (unfit !== null) return unfit
    if (row !== null) rows.set(row.value.name, row)
  }
  return [...rows.values()].map((row) => readOf('outside-issuer', row.value.name, row))
}

/** As much of an output as is asked here. Left out: the built-in authority. */
type NamingOutput = { readonly name: string; readonly lifetimeMs: number; readonly issuer?: string }

const ofOutput = ({ name, lifetimeMs, issuer = builtIn }: NamingOutput): NamedIssuer => ({
  ...{ issuer, lifetimeMs, kind: outputKind(name), what: `output ${name}`, option: `--output-name ${name}` },
})

/** Of outputs that are as before nothing is asked: everything else of a list can be changed while an issuer is disabled. */
export const namedByOutputs = (
  after: readonly NamingOutput[],
  before: readonly NamingOutput[] = [],
): readonly NamedIssuer[] =>
  after
    .filter(({ name, issuer, lifetimeMs }) => {
      const was = before.find((one) => one.name === name)
      return was?.issuer !== issuer || was?.lifetimeMs !== lifetimeMs
    })
    .map(ofOutput)

/** Names of the outputs of a list that have it as their issuer. */
export const outputsNaming = (issuer: string, outputs: readonly NamingOutput[]): readonly string[] =>
  outputs.filter((one) => (one.issuer ?? builtIn) === issuer).map(({ name }) => name)

/** Names of the worker issuers whose workers it signs for. */
export const workersNaming = (issuer: string, workerIssuers: readonly Row<RowTypes['worker-issuer']>[]) =>
  workerIssuers.flatMap(({ value: { name, signedBy = builtIn, removedAtMs } }) =>
    signedBy === issuer && removedAtMs === null ? [name] : [],
  )

export const namedByWorkers = (workerIssuer: string, issuer: string, lifetimeMs: number): NamedIssuer => ({
  ...{ issuer, lifetimeMs, kind: workerKind(workerIssuer), what: `the workers of ${workerIssuer}` },
  option: `--worker-issuer ${workerIssuer}`,
})
