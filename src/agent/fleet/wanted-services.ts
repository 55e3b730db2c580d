// The services of an overlay as they are to be started, and what makes two of them the same. Pure.

import { createHash } from 'node:crypto'
import type { OverlayFile, Service } from '#domain/fleet/overlay.ts'

export type WantedService = {
  readonly name: string
  /** With the folder of the files in its place. */
  readonly command: readonly string[]
  /** Of the command and of the files it names: one that differs in neither goes on running. */
  readonly digest: string
  /** It names files, and is not started without them. */
  readonly needsFiles: boolean
}

const place = '{overlay}'

export const wantedServices = (
  overlay: { readonly services: readonly Service[]; readonly files: readonly OverlayFile[] },
  folder: string,
): readonly WantedService[] =>
  overlay.services.map(({ name, command }) => ({
    name,
    command: command.map((word) => word.replaceAll(place, folder)),
    digest: digestOf([command, namedFiles(command, overlay.files)]),
    needsFiles: command.some((word) => word.includes(place)),
  }))

/** What the folder of the files is called: the same files, the same name. */
export const digestOfFiles = (files: readonly OverlayFile[]): string => digestOf(plain(files))

/** `{overlay}/etc/app.conf` names that file, `{overlay}/etc` all below; what names neither is taken to mean all of them. */
const namedFiles = (command: readonly string[], files: readonly OverlayFile[]): readonly unknown[] => {
  const named = command.flatMap((word) => [...word.matchAll(/\{overlay\}([A-Za-z0-9._/-]*)/g)].map(([, tail]) => tail))
  const meant = named.flatMap((tail = '') => {
    const wanted = tail.replace(/^\/+|\/+$/g, '')
    const below = files.filter(({ path }) => path === wanted || path.startsWith(`${wanted}/`))
    return below.length === 0 ? files : below
  })
  return plain([...new Set(meant)])
}

const plain = (files: readonly OverlayFile[]): readonly unknown[] =>
  files
    .map(({ path, mode, content }) => [path, mode, content])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : a > b ? 1 : 0))

const digestOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16)
