// What `muster` can do on a machine that only runs the agent: the nouns of the single-file bundle.

import type { Noun } from '#cli/kit/cli.ts'

export const nodeNouns: readonly Noun[] = [
  { name: 'agent', load: async () => (await import('./agent/agent.ts')).declareAgent },
  { name: 'version', load: async () => (await import('./kit/version.ts')).declareVersion },
]
