// What a caller brings to an enrollment, looked up before anything of it costs more than a read.

import { judgeHardware, judgeToken, type Credential } from '#domain/enrollment/credential.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import { tokenSecretShape, type Token } from '#domain/enrollment/token.ts'
import type { HardwareIdentity } from '#domain/core/node.ts'
import { sha256Hex } from '#platform/bytes.ts'
import type { Clock } from '#platform/clock.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'

export type FindDeps = { readonly store: Store; readonly clock: Clock }

export type Brought = {
  readonly method: 'token' | 'hardware'
  readonly secret: string | null
  readonly hardware: HardwareIdentity
}

type Found = Credential & { readonly kind: 'found' }

export const findCredential = async (deps: FindDeps, call: Brought): Promise<Found | Refusal> => {
  const judged =
    call.method === 'token'
      ? await findToken(deps, call)
      : judgeHardware(call.hardware, await deps.store.nodesByHardware(call.hardware))
  return 'code' in judged ? judged : { ...judged, kind: 'found' }
}

const findToken = async (deps: FindDeps, call: Brought): Promise<Credential | Refusal> => {
  if (call.secret === null || !tokenSecretShape.test(call.secret)) return refuse('TOKEN_MALFORMED')
  const token = await deps.store.get('token', sha256Hex(call.secret))
  const { clockToleranceMs } = (await domainSettingsRow(deps.store)).value
  const judged = judgeToken(token, deps.clock.nowMs(), clockToleranceMs)
  // Whoever brings an expired or withdrawn token knew its secret: the journal says which it was.
  return 'code' in judged && token !== null ? { ...judged, about: aboutToken(token.value) } : judged
}

/** A token that is taken proves nothing before the request shows the key it was taken with, nor does a tombstone. */
export const isProven = async ({ store }: FindDeps, credential: Found | Refusal): Promise<boolean> => {
  if (credential.kind === 'refused') return false
  if (credential.method === 'token') return credential.standing === 'unused'
  const { membership, profile: name } = credential.node.value
  const profile = await store.get('profile', name)
  // Addresses are no secret: where more than them is asked for, whoever knows one is still anybody.
  return membership.kind !== 'revoked' && (profile?.value.join.allOf.every((method) => method === 'hardware') ?? false)
}

/** Whom a refusal concerns, for the journal. */
export const aboutOf = (credential: Credential) => {
  if (credential.method === 'hardware') return { node: credential.node.value.id, token: null, actor: 'hardware' }
  return aboutToken(credential.token.value)
}

const aboutToken = ({ id, scope }: Token) => ({
  node: scope.kind === 'node' ? scope.node : null,
  token: id,
  actor: `token:${id}`,
})
