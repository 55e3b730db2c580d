// What `muster` can do on a machine that only runs the agent: the nouns of the single-file bundle.

import type { DeclareNoun } from './cli.ts'
import { declareAgent } from './nouns/agent.ts'
import { declareVersion } from './nouns/version.ts'

export const nodeNouns: readonly DeclareNoun[] = [declareAgent, declareVersion]
