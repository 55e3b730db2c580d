// What `muster` can do on a machine that only runs the agent: the nouns of the single-file bundle.

import type { DeclareNoun } from '#cli/kit/cli.ts'
import { declareAgent } from '#cli/agent/agent-noun.ts'
import { declareVersion } from '#cli/kit/version-noun.ts'

export const nodeNouns: readonly DeclareNoun[] = [declareAgent, declareVersion]
