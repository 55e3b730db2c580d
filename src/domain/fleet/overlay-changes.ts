// What has become of an overlay, for the journal: which files and services. Never what is in them: that may be a secret.

import type { Overlay } from './overlay.ts'

/** Empty: nothing is otherwise, unless in its order. */
export const overlayChanges = (before: Overlay, after: Overlay): string[] => [
  ...named('file', byName(before.files, 'path'), byName(after.files, 'path')),
  ...named('service', byName(before.services, 'name'), byName(after.services, 'name')),
]

type Contents = ReadonlyMap<string, string>

const byName = <N extends string, T extends Readonly<Record<N, string>>>(things: readonly T[], name: N): Contents =>
  new Map(things.map((thing) => [thing[name], JSON.stringify(thing)]))

const named = (what: string, before: Contents, after: Contents): string[] => [
  ...[...before.keys()].filter((name) => !after.has(name)).map((name) => `${what} ${name} removed`),
  ...[...after].flatMap(([name, content]) => {
    if (before.get(name) === content) return []
    return [`${what} ${name} ${before.has(name) ? 'changed' : 'added'}`]
  }),
]
