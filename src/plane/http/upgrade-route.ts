// Upgrades bypass the HTTP framework, so their address is matched here, against the same table of routes.

import type { Route } from './route.ts'

export type UpgradeMatch = { readonly route: Route; readonly params: Readonly<Record<string, string>> }

export const matchUpgrade = (routes: readonly Route[], url: string): UpgradeMatch | null => {
  const asked = url.split('?', 1)[0]?.split('/') ?? []
  for (const route of routes) {
    if (route.kind !== 'upgrade') continue
    const params = matchPath(route.path.split('/'), asked)
    if (params !== null) return { route, params }
  }
  return null
}

const matchPath = (pattern: readonly string[], asked: readonly string[]): Record<string, string> | null => {
  if (pattern.length !== asked.length) return null
  const params: Record<string, string> = {}
  for (const [at, part] of pattern.entries()) {
    const given = asked[at]
    if (given === undefined || given === '') {
      if (part !== '') return null
    } else if (part.startsWith(':')) params[part.slice(1)] = given
    else if (part !== given) return null
  }
  return params
}
