// Many nodes and their tokens in one call. Each line is read, decided and committed for itself; the store's group commit lets them
// share a flush. A secret is in the answer only.

import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { hardwareIdentity } from '#domain/core/hardware-identity.ts'
import type { Attribution } from '#domain/core/change.ts'
import { decideBatchLine, type BatchLineDecided } from '#domain/enrollment/batch-line.ts'
import { tagsAfter } from '#domain/fleet/hardware-rules.ts'
import { commitDecision, type Done } from '#plane/core/commit-decision.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { formerNode } from '#plane/core/former-node.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { liveProfile } from '#plane/core/live-profile.ts'
import { answer, attributionOf, type CallOf } from '#plane/http/route.ts'
import { errorBody } from '#wire/core/refusal-response.ts'
import { type TokenBatchAnswer, type TokenBatchLine, type tokenApi, tokenView } from '#wire/enrollment/token-api.ts'
import { joinStringOf, mintToken, type JoinTarget } from './mint-token.ts'

type LineResult = TokenBatchAnswer['results'][number]

export const createTokenBatch = async (
  core: FlowCore,
  target: JoinTarget,
  call: CallOf<typeof tokenApi.createBatch>,
) => {
  const { batch, attempt, expires_ms: ttlMs = null, lines } = call.body
  const by = attributionOf(call)
  const twice = lines.find(({ id }, at) => lines.findIndex((line) => line.id === id) !== at)
  if (twice !== undefined) return refuseField('REQUEST_INVALID', 'lines', `${twice.id} is named by two lines`)
  // A store that cannot commit one line fails the call: the next attempt withdraws what was committed.
  const results = await Promise.all(lines.map((line) => resultOf(core, target, { line, batch, attempt, ttlMs, by })))
  return answer({ results })
}

type Asked = {
  readonly line: TokenBatchLine
  readonly batch: string
  readonly attempt: number
  readonly ttlMs: number | null
  readonly by: Attribution
}

const resultOf = async (core: FlowCore, target: JoinTarget, asked: Asked): Promise<LineResult> => {
  const { id } = asked.line
  const { secret, ...minted } = mintToken(core, target)
  const done = await commitLine(core, asked, minted)
  if (done.kind === 'refused')
    return { id, registered: false, withdrawn: 0, token: null, join: null, refused: errorBody(done) }
  return {
    id,
    registered: done.registered,
    withdrawn: done.withdrawn,
    token: tokenView(done.token, core.clock.nowMs()),
    join: joinStringOf(target, done.domainName, secret),
    refused: null,
  }
}

type Committed = Done<BatchLineDecided & { readonly domainName: string }>
/** A node has a few; what is beyond was withdrawn or used long ago. */
const mostTokens = 100

const commitLine = async (
  core: FlowCore,
  { line, batch, attempt, ttlMs, by }: Asked,
  minted: Omit<ReturnType<typeof mintToken>, 'secret'>,
): Promise<Committed | Refusal> => {
  const { id, profile: wanted = null, macs = [], bmc_serial: bmcSerial = null, tags = [] } = line
  const hardware = hardwareIdentity(macs, bmcSerial)
  if ('kind' in hardware) return hardware
  const { store, clock } = core
  return commitDecision(core, async () => {
    const domain = await domainSettingsRow(store)
    const existing = await store.get('node', id)
    const kept = existing === null || existing.value.membership.kind === 'revoked' ? null : existing.value
    const name = wanted ?? kept?.profile ?? domain.value.defaultProfile
    const profile = await liveProfile(store, name)
    if (isRefusal(profile)) return profile
    const hardwareProfiles = await Promise.all(
      tagsAfter(kept?.machine.tags ?? [], { add: tags, remove: [] }).map(async (tag) => ({
        tag,
        row: await store.get('hardware-profile', tag),
      })),
    )
    const decided = decideBatchLine({
      ...minted,
      ...{ id, profile, hardware, tags, hardwareProfiles, existing, batch, attempt, ttlMs, domain, by },
      former: await formerNode(store, id),
      owners: await store.nodesByHardware(hardware),
      tokens: existing === null ? [] : await store.tokens({ node: id, limit: mostTokens }),
      nowMs: clock.nowMs(),
    })
    return decided.kind === 'refused' ? decided : { ...decided, domainName: domain.value.name }
  })
}
