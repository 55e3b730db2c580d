// Which outputs of this node have files in a directory: by their certificates, because another agent may write there as well.

import { programUri } from '#domain/core/subject-uri.ts'
import { fileOfGenerations } from '#platform/file-generations.ts'
import { parseCertificate, type ParsedCertificate } from '#pki/parse-certificate.ts'
import { allFromPem } from '#pki/pem.ts'
import type { FoundOutput, NodeOfPrograms, Place } from './publisher.ts'

const longestChain = 64 * 1024

/**
 * A name of which one generation is not for this node is left out whole: files are removed by their name. Throws where the directory
 * cannot be read.
 */
export const findOutputs = (place: Place, { domain, node }: NodeOfPrograms): readonly FoundOutput[] => {
  const chains = fileOfGenerations(place.directory, 'cert.pem', longestChain)
  return [...new Set(chains.map(({ name }) => name))].flatMap((output) => {
    const generations = chains.filter(({ name }) => name === output)
    const leaves = generations.map(({ text, isCurrent }) => ({ leaf: leafIn(text), isCurrent }))
    const uri = programUri(domain, node, output)
    if (!leaves.every(({ leaf }) => leaf?.uris.join(' ') === uri)) return []
    return [{ ...place, output, serial: leaves.find(({ isCurrent }) => isCurrent)?.leaf?.serial ?? null }]
  })
}

const leafIn = (chainPem: string): ParsedCertificate | null => {
  const [der] = allFromPem('CERTIFICATE', chainPem) ?? []
  const leaf = der === undefined ? null : parseCertificate(der)
  return leaf === null || leaf.kind === 'malformed' ? null : leaf
}
