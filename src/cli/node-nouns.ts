// What `muster` can do on a machine that only runs the agent: the nouns of the single-file bundle.

import type { Noun } from '#cli/kit/cli.ts'

export const agentNoun: Noun = {
  name: 'agent',
  summary: 'The agent of this machine',
  load: async () => (await import('./agent/agent.ts')).declareAgent,
}

export const versionNoun: Noun = {
  name: 'version',
  summary: 'Print the version',
  load: async () => (await import('./kit/version.ts')).declareVersion,
}

export const nodeNouns: readonly Noun[] = [agentNoun, versionNoun]
