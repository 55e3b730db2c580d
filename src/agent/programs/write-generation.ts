// What a program finds on its host: the files of one generation of an output, written so that they appear at once. Used by the
// agent for a directory of its own user, and by the helper for a directory of the host. It checks nothing: whether the directory,
// the owner and the content are right is up to the caller.

import { removeGenerations, replaceGeneration, type GenerationFile, type Replaced } from '#platform/file-generations.ts'
import type { Owner } from '#platform/files.ts'
import type { Random } from '#platform/random.ts'
import { loadPrivateKey } from '#pki/keys.ts'
import { allFromPem, fromPem } from '#pki/pem.ts'
import { buildPkcs12 } from '#pki/pkcs12.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import type { Generation } from './publisher.ts'

/** What of a generation ends up in its files. */
export type WrittenGeneration = Pick<Generation, 'keyPem' | 'chainPem' | 'rootsPem' | 'lists'> & {
  readonly output: Pick<ConfigOutput, 'name' | 'files'>
}

/**
 * Writes `directory/OUTPUT`, a link to a folder with the files. `directory` must be there, and may be `/proc/self/fd/N` of an open
 * one. Throws what the disk throws, and then the generation before is in place; throws `PlaceIsTaken` where something else has the
 * name. `owner`: of the files that hold the key; null is who writes. All else stays with who writes, so that an owner can add
 * nothing to the folder and take nothing off a revocation list.
 */
export const writeGeneration = (
  directory: string,
  generation: WrittenGeneration,
  owner: Owner | null,
  random: Random,
  passed: () => void = () => {},
): Replaced => replaceGeneration(directory, generation.output.name, filesOf(generation, owner, random), passed)

/** Also where there is none. */
export const removeGeneration = (directory: string, output: string): void => {
  removeGenerations(directory, output)
}

/**
 * Java opens no store without a password, and one beside the store protects nothing: who may read the bundle is up to its mode. So
 * it is the one that Java itself takes where none is given, and it never changes.
 */
const bundlePassword = 'changeit'

/** Certificates and lists may be read by everyone; what holds the key has the owner and the mode that were asked for. */
const filesOf = (generation: WrittenGeneration, owner: Owner | null, random: Random): readonly GenerationFile[] => {
  const { output, keyPem, chainPem, rootsPem, lists } = generation
  const { key_mode: keyMode, combined, pkcs12 } = output.files
  const open = { mode: 0o644, owner: null }
  const secret = { mode: keyMode, owner }
  return [
    { name: 'key.pem', ...secret, content: keyPem },
    { name: 'cert.pem', ...open, content: chainPem },
    { name: 'roots.pem', ...open, content: rootsPem },
    { name: 'crl.pem', ...open, content: lists.join('') },
    { name: 'crl-issuing.pem', ...open, content: lists[0] ?? '' },
    ...(combined ? [{ name: 'combined.pem', ...secret, content: `${keyPem}${chainPem}` }] : []),
    ...(pkcs12
      ? [
          { name: 'bundle.p12', ...secret, content: bundleOf(generation, random) },
          { name: 'bundle.password', ...secret, content: `${bundlePassword}\n` },
        ]
      : []),
  ]
}

const bundleOf = ({ output, keyPem, chainPem }: WrittenGeneration, random: Random): Uint8Array => {
  const key = fromPem('PRIVATE KEY', keyPem)
  const chain = allFromPem('CERTIFICATE', chainPem)
  if (key === null || chain === null) throw new Error('a generation whose key or chain is no PEM')
  const { spki } = loadPrivateKey(keyPem)
  return buildPkcs12({ key, spki, chain, name: output.name, password: bundlePassword }, (count) => random.bytes(count))
}
