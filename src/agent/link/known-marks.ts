// The roots of planes that are known to carry their mark, for machines that enroll again: with keys in memory nothing else is left
// of the identity before, and a join string may be older than the mark. Never forgotten: a server without the mark is from then
// on not the plane.

import * as path from 'node:path'
import { Type } from 'typebox'
import { fingerprint } from '#pki/certificate.ts'
import { fromPem } from '#pki/pem.ts'
import { makeFolder, readFileIfAny, replaceFile } from '#platform/files.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import type { Identity } from '#agent/state/credentials.ts'

export type KnownMarks = {
  has(rootFingerprint: string): boolean
  /** The plane of this identity has said so. Without effect where it has not. */
  learn(identity: Pick<Identity, 'marked' | 'roots' | 'origin'>): void
}

/** More than a machine ever meets; the latest are kept. */
const mostRoots = 64

const Stored = Type.Object({
  version: Type.Literal(1),
  roots: Type.Array(Type.String({ pattern: '^[0-9a-f]{64}$' }), { maxItems: mostRoots }),
})

const marksFile = (stateFolder: string): string => path.join(stateFolder, 'marked.json')

export const openKnownMarks = (stateFolder: string): KnownMarks => {
  let roots: readonly string[] = read(marksFile(stateFolder))
  return {
    has: (root) => roots.includes(root),
    learn(identity) {
      const named = identity.marked ? rootsOf(identity) : []
      if (named.every((root) => roots.includes(root))) return
      roots = [...new Set([...named, ...roots])].slice(0, mostRoots)
      write(stateFolder, roots)
    },
  }
}

const rootsOf = ({ roots, origin }: Pick<Identity, 'roots' | 'origin'>): readonly string[] => {
  const ders = roots.map((pem) => fromPem('CERTIFICATE', pem)).filter((der) => der !== null)
  return [origin.rootFingerprint, ...ders.map(fingerprint)].filter((root) => /^[0-9a-f]{64}$/.test(root))
}

const read = (file: string): readonly string[] => {
  try {
    const value: unknown = JSON.parse(readFileIfAny(file) ?? 'null')
    return matchesSchema(Stored, value) ? value.roots : []
  } catch {
    return []
  }
}

/** A disk that cannot be written is reported where credentials are written; an identity has the mark in itself, too. */
const write = (stateFolder: string, roots: readonly string[]): void => {
  try {
    makeFolder(stateFolder, 0o700)
    replaceFile(marksFile(stateFolder), JSON.stringify({ version: 1, roots }, null, 1) + '\n', 0o600)
  } catch {
    return
  }
}
