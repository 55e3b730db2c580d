// Outputs through the helper: below the directories of the host that agent.toml lists, for the users it lists.

import * as path from 'node:path'
import type { Publisher } from '#agent/programs/publisher.ts'
import { HelperRefusal, type HelperClient } from './client.ts'
import type { AnswerOf } from './verbs.ts'

export type HelperFeatures =
  | { readonly kind: 'there'; readonly allows: AnswerOf<'hello'>; readonly lacks: readonly string[] }
  | { readonly kind: 'none'; readonly lacks: readonly string[] }

/** A feature, and the verb it takes. */
const features = [
  ['outputs in directories of other users', 'output.write'],
  ['reloads by the helper', 'reload'],
  ['services as users of their own', 'service.start'],
  ['checks as users of their own', 'check.run'],
] as const

/** What this host lets its agent do beyond its own user, in words for `agent status` and the plane. Never throws. */
export const helperFeatures = async (client: HelperClient): Promise<HelperFeatures> => {
  try {
    const allows = await client.ask('hello', {})
    const lacks = features.filter(([, verb]) => !allows.verbs.includes(verb)).map(([feature]) => feature)
    return { kind: 'there', allows, lacks }
  } catch (error) {
    if (!(error instanceof HelperRefusal)) throw error
    return { kind: 'none', lacks: features.map(([feature]) => feature) }
  }
}

/** `allows`: as the helper said at the start; what agent.toml allows since is found out by trying. */
export const helpedPublisher = (client: HelperClient, allows: AnswerOf<'hello'>): Publisher => ({
  publish: async ({ output, keyPem, chainPem, rootsPem, lists, authoritiesPem }) => {
    await client.ask('output.write', {
      name: output.name,
      files: output.files,
      key: keyPem,
      chain: chainPem,
      roots: rootsPem,
      lists: [...lists],
      authorities: authoritiesPem,
    })
  },
  remove: async (name) => void (await client.ask('output.remove', { name })),
  placeOf: ({ name, files }) => {
    const listed = allows.outputs.find(({ directory }) => directory === files.directory)
    return listed === undefined || listed.names?.includes(name) === false ? null : path.join(listed.directory, name)
  },
  reload: async (name) => void (await client.ask('reload', { name })),
})
