// An operator reports that the key of an authority may be compromised: the plane goes on with another, and every node with a
// certificate of that authority is shut out, and comes back through recovery.

import type { Attribution } from '#domain/core/change.ts'
import type { IssuerId } from '#domain/core/node.ts'
import type { Refusal } from '#domain/core/refusal.ts'
import type { Feed } from '#plane/core/feed.ts'
import type { Authority } from '#plane/authority/authority.ts'
import type { Withdrawal } from '#plane/authority/withdraw-issuer.ts'
import type { OpenChannels } from '#plane/core/open-channels.ts'

/** `channelsCut`: of this replica; the others cut theirs when the commit reaches them, or lose their lease. */
export type WithdrawnAuthority = Withdrawal & { readonly channelsCut: number }

export const withdrawAuthority = async (
  feed: Pick<Feed, 'publish'>,
  authority: Pick<Authority, 'withdraw'>,
  channels: Pick<OpenChannels, 'count'>,
  withdrawal: { readonly issuer: IssuerId; readonly reason: string; readonly by: Attribution },
): Promise<WithdrawnAuthority | Refusal> => {
  let channelsCut = 0
  const outcome = await authority.withdraw({
    ...withdrawal,
    publish(committed) {
      const before = channels.count()
      feed.publish(committed)
      channelsCut += before - channels.count()
    },
  })
  return outcome.kind === 'refused' ? outcome : { ...outcome, channelsCut }
}
