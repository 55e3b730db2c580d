// An output: what a profile or a vCluster lists for one program of each of its nodes. Every node makes a key for it and gets a
// leaf of its own, below the programs root. Where it lands on the host is bounded by the host's own agent.toml.

import { builtIn, type KeyType } from '#domain/core/profile.ts'

export const noOutputs: readonly Output[] = []

export type Output = {
  /** Lower case letters, digits and dashes, at most 32. It is in the leaf's URI and in the paths on the host. */
  readonly name: string
  readonly lifetimeMs: number
  readonly keyType: KeyType
  readonly usage: 'client' | 'server' | 'both'
  /**
   * DNS names for a server: `{name}` stands for every DNS name that an operator registered for the node, so `{name}` alone is
   * all of them and `db.{name}` a name below each. Nothing that a node reports gets in.
   */
  readonly dns: readonly string[]
  /** Whether the addresses that an operator registered for the node get in. */
  readonly addresses: boolean
  readonly files: OutputFiles
  /** Who signs its leaves. Left out: the built-in authority, below the programs root. Rows of releases before 0.7 have none. */
  readonly issuer?: string
}

export const issuerOf = ({ issuer = builtIn }: Pick<Output, 'issuer'>): string => issuer

export type OutputFiles = {
  /** A directory that agent.toml lists; null: below the agent's own directory. */
  readonly directory: string | null
  readonly owner: string | null
  readonly group: string | null
  /** Of the key and of what contains it, e.g. 0o640; certificates and lists can be read by everyone. */
  readonly keyMode: number
  /** Key and chain in one file as well. */
  readonly combined: boolean
  readonly pkcs12: boolean
  /** The name of a reload in agent.toml; null: none. */
  readonly reload: string | null
}

/** What can be in the folder of an output; the last three only where they are asked for. */
export const outputFileNames = [
  'key.pem',
  'cert.pem',
  'roots.pem',
  'crl.pem',
  'crl-issuing.pem',
  'combined.pem',
  'bundle.p12',
  'bundle.password',
] as const
export type OutputFileName = (typeof outputFileNames)[number]

/** A profile or a vCluster. */
export type OutputList = { readonly name: string; readonly outputs: readonly Output[] }

/** Of a node: its profile's, and those of its vCluster, which replace the profile's of the same name. */
export const outputsFor = (
  profile: Pick<OutputList, 'outputs'>,
  vcluster: Pick<OutputList, 'outputs'> | null,
): readonly Output[] => {
  const own = vcluster?.outputs ?? []
  const replaced = new Set(own.map(({ name }) => name))
  return [...own, ...profile.outputs.filter(({ name }) => !replaced.has(name))]
}
