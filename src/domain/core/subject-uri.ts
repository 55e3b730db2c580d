// The URI names of nodes and of their programs (ruling 9, ruling 19): the only one in a leaf of either.

export const nodeUri = (domain: string, node: string): string => `spiffe://${domain}/node/${node}`

export const programUri = (domain: string, node: string, output: string): string =>
  `${nodeUri(domain, node)}/program/${output}`
