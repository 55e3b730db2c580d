// Every noun of `muster`, in the order its help lists them.

import type { DeclareNoun } from '#cli/kit/cli.ts'
import { declareAgent } from '#cli/agent/agent-noun.ts'
import { declareAlert } from '#cli/alerts/alert-noun.ts'
import { declareAllocation } from '#cli/fleet/allocation-noun.ts'
import { declareCa } from '#cli/ca/ca-noun.ts'
import { declareCompletion } from '#cli/kit/completion-noun.ts'
import { declareDemo } from '#cli/demo/demo-noun.ts'
import { declareDomain } from '#cli/settings/domain-noun.ts'
import { declareExplain } from '#cli/node/explain-noun.ts'
import { declareHardwareProfile } from '#cli/fleet/hardware-profile-noun.ts'
import { declareIssuance } from '#cli/identity/issuance-noun.ts'
import { declareJournal } from '#cli/journal/journal-noun.ts'
import { declareKey } from '#cli/operators/key-noun.ts'
import { declareNode } from '#cli/node/node-noun.ts'
import { declarePeerDomain } from '#cli/federation/peer-domain-noun.ts'
import { declarePlan } from '#cli/plans/plan-noun.ts'
import { declarePlane } from '#cli/plane/plane-noun.ts'
import { declareProfile } from '#cli/settings/profile-noun.ts'
import { declareScheduling } from '#cli/fleet/scheduling-noun.ts'
import { declareReceipt } from '#cli/revocation/receipt-noun.ts'
import { declareStore } from '#cli/store/store-noun.ts'
import { declareToken } from '#cli/enrollment/token-noun.ts'
import { declareVCluster } from '#cli/fleet/vcluster-noun.ts'
import { declareVersion } from '#cli/kit/version-noun.ts'

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
