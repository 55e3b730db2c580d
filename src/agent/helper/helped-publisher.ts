// Outputs through the helper: below the directories of the host that agent.toml lists, for the users it lists.

import { LeftBehind, pathOf, type Place, type Publisher } from '#agent/programs/publisher.ts'
import { hasGenerations } from '#platform/file-generations.ts'
import { errno } from '#platform/files.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import { HelperRefusal, type HelperClient } from './client.ts'
import type { AnswerOf } from './verbs.ts'

export type HelperFeatures =
  | { readonly kind: 'there'; readonly allows: AnswerOf<'hello'>; readonly lacks: readonly string[] }
  | { readonly kind: 'none'; readonly why: string; readonly lacks: readonly string[] }

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
    return { kind: 'none', why: error.message, lacks: features.map(([feature]) => feature) }
  }
}

/** As the helper said, `allows`; what agent.toml allows since is found out by trying. Null: it has no place for the output. */
export const helpedPlace = (allows: AnswerOf<'hello'>, { name, files }: ConfigOutput): Place | null => {
  const listed = allows.outputs.find(({ directory }) => directory === files.directory)
  return listed === undefined || listed.names?.includes(name) === false
    ? null
    : { by: 'helper', directory: listed.directory }
}

type HelpedPublisher = Pick<Publisher, 'publish' | 'remove' | 'reload'>

export const helpedPublisher = (client: HelperClient): HelpedPublisher => ({
  publish: async ({ output, keyPem, chainPem, rootsPem, lists, authoritiesPem }) => {
    const { durable } = await client.ask('output.write', {
      name: output.name,
      files: output.files,
      key: keyPem,
      chain: chainPem,
      roots: rootsPem,
      lists: [...lists],
      authorities: authoritiesPem,
    })
    return durable ? 'durable' : 'in-doubt'
  },
  remove: async (name, place) => {
    try {
      await client.ask('output.remove', { name, directory: place.directory })
    } catch (error) {
      if (!(error instanceof HelperRefusal)) throw error
      // By hand, or by a helper that this host has no more.
      if (isGone(name, place, error)) return
      const said = `${pathOf(name, place)} is left there: ${error.message}`
      throw mayPass.has(error.code) ? new Error(said) : new LeftBehind(`${said}; remove it by hand`)
    }
  },
  reload: async (name) => void (await client.ask('reload', { name })),
})

/** As far as the agent's own user can see. A missing directory may be one that only the helper sees, unless it is not listed either. */
const isGone = (name: string, { directory }: Place, { code }: HelperRefusal): boolean => {
  try {
    return !hasGenerations(directory, name)
  } catch (error) {
    return code === 'NOT_ALLOWED' && errno(error) === 'ENOENT'
  }
}

/** What is different later without anybody's doing. Else the owner of the host has to change agent.toml, the directory or the socket. */
const mayPass: ReadonlySet<string> = new Set(['NO_HELPER', 'BUSY', 'BAD_ANSWER'])
