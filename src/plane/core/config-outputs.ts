// The outputs of a node, as its agent is sent them.

import type { Node } from '#domain/core/node.ts'
import { leafNames, registeredNames } from '#domain/programs/node-names.ts'
import { outputsFor, type Output, type OutputList } from '#domain/programs/output.ts'
import { mostOutputs } from '#domain/programs/output-rules.ts'
import type { Store } from '#plane/store/contract/store.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import { namesHeldBy } from './programs-of-node.ts'

/** As JSON, in bytes: beside an overlay of full length they have to fit a frame of the channel. */
const longestOutputs = 12_000

export const configOutputs = async (
  store: Pick<Store, 'get' | 'list'>,
  { id }: Node,
  profile: OutputList,
  vcluster: OutputList | null,
): Promise<readonly ConfigOutput[]> => {
  const listed = outputsFor(profile, vcluster).slice(0, mostOutputs)
  if (listed.length === 0) return []
  const registered = registeredNames(await namesHeldBy(store, id), id)
  return asManyAsFit(listed.map((output) => configOutput(output, leafNames(output, registered))))
}

/** A node with many long names and outputs gets the first of them: a frame that does not fit would reach it never. */
const asManyAsFit = (outputs: readonly ConfigOutput[]): readonly ConfigOutput[] => {
  let left = longestOutputs
  return outputs.filter((output) => (left -= JSON.stringify(output).length) >= 0)
}

const configOutput = ({ name, keyType, lifetimeMs, usage, files }: Output, names: readonly string[]): ConfigOutput => ({
  name,
  key_type: keyType,
  lifetime_ms: lifetimeMs,
  usage,
  names: [...names],
  files: {
    directory: files.directory,
    owner: files.owner,
    group: files.group,
    key_mode: files.keyMode,
    combined: files.combined,
    pkcs12: files.pkcs12,
    reload: files.reload,
  },
})
