// The services of an overlay as they are to be started, and what makes two of them the same. All functions here are pure.

import type { OverlayFile, Service } from '#domain/fleet/overlay.ts'
import type { ConfigService } from '#wire/fleet/overlay.ts'
import { definitionOfService, inPlace, namesPlace, type ServiceDefinition } from '#wire/fleet/overlay-definition.ts'
import { plainDigest, type Digest } from './secret-digest.ts'

export type WantedTerms = {
  /** Null: the runner decides. */
  readonly user: string | null
  readonly environment: Readonly<Record<string, string>>
  readonly workingDirectory: string
  readonly restart: NonNullable<ConfigService['terms']>['restart']
  readonly memoryBytes: number | null
  readonly cpus: number | null
  readonly openFiles: number | null
}

export type WantedService = {
  readonly name: string
  /** With the folder of the files in its place. */
  readonly command: readonly string[]
  readonly terms: WantedTerms
  /** Of the command, the terms and the files it names: one that differs in none of them goes on running. */
  readonly digest: string
  /** What agents of 0.3 have started it with, so that an upgraded one restarts nothing; null: they do not know its terms. */
  readonly formerDigest: string | null
  /** It names files, and is not started without them. */
  readonly needsFiles: boolean
  /** As the plane has signed it for a helper that asks for that, and the folder of the files. */
  readonly shown: { readonly definition: ServiceDefinition; readonly folder: string }
}

export const usualTerms: WantedTerms = {
  user: null,
  environment: {},
  workingDirectory: '/',
  restart: 'always',
  memoryBytes: null,
  cpus: null,
  openFiles: null,
}

export const wantedServices = (
  overlay: {
    readonly services: readonly (Service & Pick<ConfigService, 'terms'>)[]
    readonly files: readonly OverlayFile[]
  },
  folder: string,
  secretDigest: Digest,
): readonly WantedService[] =>
  overlay.services.map(({ name, command, terms }) => {
    const words = [...command, ...(terms === undefined ? [] : placesIn(terms))]
    const named = namedFiles(words, overlay.files)
    const formerDigest = terms === undefined ? plainDigest([command, plain(named)]) : null
    const isOpen = named.every(isForEverybody)
    return {
      name,
      command: command.map((word) => inPlace(word, folder)),
      terms: terms === undefined ? usualTerms : wantedTerms(terms, folder),
      digest: formerDigest !== null && isOpen ? formerDigest : secretDigest([command, plain(named), terms ?? null]),
      formerDigest,
      needsFiles: words.some(namesPlace),
      shown: { definition: definitionOfService({ name, command, ...(terms !== undefined && { terms }) }), folder },
    }
  })

/** Whether what was started with that digest is this one. */
export const isStartedAs = (
  digest: string,
  { digest: now, formerDigest }: Pick<WantedService, 'digest' | 'formerDigest'>,
): boolean => digest === now || digest === formerDigest

const placesIn = ({ environment, working_directory: directory }: NonNullable<ConfigService['terms']>): string[] => [
  ...Object.values(environment),
  ...(directory === null ? [] : [directory]),
]

const wantedTerms = (terms: NonNullable<ConfigService['terms']>, folder: string): WantedTerms => ({
  user: terms.user,
  environment: Object.fromEntries(
    Object.entries(terms.environment).map(([name, value]) => [name, inPlace(value, folder)]),
  ),
  workingDirectory: terms.working_directory === null ? '/' : inPlace(terms.working_directory, folder),
  restart: terms.restart,
  memoryBytes: terms.memory_bytes,
  cpus: terms.cpus,
  openFiles: terms.open_files,
})

/** What the folder of the files is called: the same files, the same name. */
export const digestOfFiles = (files: readonly OverlayFile[], secretDigest: Digest): string =>
  (files.every(isForEverybody) ? plainDigest : secretDigest)(plain(files))

const isForEverybody = ({ mode }: OverlayFile): boolean => (mode & 0o004) !== 0

/** `{overlay}/etc/app.conf` names that file, `{overlay}/etc` all below; what names neither is taken to mean all of them. */
const namedFiles = (command: readonly string[], files: readonly OverlayFile[]): readonly OverlayFile[] => {
  const named = command.flatMap((word) => [...word.matchAll(/\{overlay\}([A-Za-z0-9._/-]*)/g)].map(([, tail]) => tail))
  const meant = named.flatMap((tail = '') => {
    const wanted = tail.replace(/^\/+|\/+$/g, '')
    const below = files.filter(({ path }) => path === wanted || path.startsWith(`${wanted}/`))
    return below.length === 0 ? files : below
  })
  return [...new Set(meant)]
}

const plain = (files: readonly OverlayFile[]): readonly unknown[] =>
  files
    .map(({ path, mode, content }) => [path, mode, content])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : a > b ? 1 : 0))
