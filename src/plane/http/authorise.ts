// Whether a proven principal may use a route. HTTP calls and WebSocket upgrades ask the same question here.

import { roleAllows, type Principal } from '#domain/core/principal.ts'
import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Route } from './route.ts'

export const authorise = (
  { access, inQuarantine }: Pick<Route, 'access' | 'inQuarantine'>,
  principal: Principal,
  params: Readonly<Record<string, string>>,
): Refusal | null => {
  switch (access) {
    case 'anyone':
      return null
    case 'node-itself':
      return nodeItself(principal, params, inQuarantine === true)
    case 'machine':
      return machine(principal)
    case 'worker':
      return worker(principal, params)
    case 'viewer':
    case 'operator':
    case 'platform-admin':
      if (principal.kind !== 'operator') return refuse('OPERATOR_KEY_REQUIRED')
      return roleAllows(principal.role, access)
        ? null
        : refuse('ROLE_FORBIDDEN', `needs ${access}, has ${principal.role}`)
  }
}

const worker = (principal: Principal, params: Readonly<Record<string, string>>): Refusal | null => {
  if (principal.kind === 'node') return wrongPrincipal()
  if (principal.kind !== 'worker') return refuse('WORKER_CERT_REQUIRED')
  const { worker: named } = params
  return named === undefined || named === principal.id ? null : refuse('IDENTITY_MISMATCH')
}

const wrongPrincipal = (): Refusal => refuse('WRONG_PRINCIPAL')

const machine = (principal: Principal): Refusal | null => {
  if (principal.kind === 'token') return null
  if (principal.kind === 'worker') return wrongPrincipal()
  if (principal.kind !== 'node')
    return refuse('CLIENT_CERT_REQUIRED', 'or an enrollment token of this domain, as Authorization: Bearer enroll_...')
  return principal.evidenceOnly ? refuse('NODE_QUARANTINED') : null
}

const nodeItself = (
  principal: Principal,
  params: Readonly<Record<string, string>>,
  inQuarantine: boolean,
): Refusal | null => {
  if (principal.kind === 'worker') return wrongPrincipal()
  if (principal.kind !== 'node') return refuse('CLIENT_CERT_REQUIRED')
  if (principal.evidenceOnly && !inQuarantine) return refuse('NODE_QUARANTINED')
  return principal.id === params['id'] ? null : refuse('IDENTITY_MISMATCH')
}
