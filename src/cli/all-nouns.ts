// Every noun of `muster`, in the order its help lists them.

import type { DeclareNoun } from './cli.ts'
import { declareAgent } from './nouns/agent.ts'
import { declareAlert } from './nouns/alert.ts'
import { declareAllocation } from './nouns/allocation.ts'
import { declareCa } from './nouns/ca.ts'
import { declareCompletion } from './nouns/completion.ts'
import { declareDemo } from './nouns/demo.ts'
import { declareDomain } from './nouns/domain.ts'
import { declareExplain } from './nouns/explain.ts'
import { declareHardwareProfile } from './nouns/hardware-profile.ts'
import { declareIssuance } from './nouns/issuance.ts'
import { declareJournal } from './nouns/journal.ts'
import { declareKey } from './nouns/key.ts'
import { declareNode } from './nouns/node.ts'
import { declarePeerDomain } from './nouns/peer-domain.ts'
import { declarePlan } from './nouns/plan.ts'
import { declarePlane } from './nouns/plane.ts'
import { declareProfile } from './nouns/profile.ts'
import { declareScheduling } from './nouns/scheduling.ts'
import { declareReceipt } from './nouns/receipt.ts'
import { declareStore } from './nouns/store.ts'
import { declareToken } from './nouns/token.ts'
import { declareVCluster } from './nouns/vcluster.ts'
import { declareVersion } from './nouns/version.ts'

export const allNouns: readonly DeclareNoun[] = [
  declarePlane,
  declareDemo,
  declareToken,
  declareNode,
  declarePlan,
  declareVCluster,
  declareAllocation,
  declareScheduling,
  declareProfile,
  declareHardwareProfile,
  declareDomain,
  declarePeerDomain,
  declareCa,
  declareIssuance,
  declareReceipt,
  declareAlert,
  declareJournal,
  declareStore,
  declareKey,
  declareAgent,
  declareExplain,
  declareCompletion,
  declareVersion,
]
