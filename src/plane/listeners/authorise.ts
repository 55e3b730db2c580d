// Whether a proven principal may use a route. HTTP calls and WebSocket upgrades ask the same question here.

import { roleAllows, type Principal } from '#domain/principal.ts'
import { refuse, type Refusal } from '#domain/refusal.ts'
import type { Access } from './route.ts'

export const authorise = (
  access: Access,
  principal: Principal,
  params: Readonly<Record<string, string>>,
): Refusal | null => {
  switch (access) {
    case 'anyone':
      return null
    case 'node-itself':
      return nodeItself(principal, params)
    case 'viewer':
    case 'operator':
    case 'platform-admin':
      if (principal.kind !== 'operator') return refuse('OPERATOR_KEY_REQUIRED')
      return roleAllows(principal.role, access)
        ? null
        : refuse('ROLE_FORBIDDEN', `needs ${access}, has ${principal.role}`)
  }
}

const nodeItself = (principal: Principal, params: Readonly<Record<string, string>>): Refusal | null => {
  if (principal.kind !== 'node') return refuse('CLIENT_CERT_REQUIRED')
  return principal.id === params['id'] ? null : refuse('IDENTITY_MISMATCH')
}
