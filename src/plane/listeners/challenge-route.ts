// The one call both doors for machines answer alike, to anyone: what time it is, signed, and something to prove a key on.

import { issueChallenge, type ChallengeDeps } from '#plane/flows/issue-challenge.ts'
import { ChallengeRequest, ChallengeResponse } from '#wire/recovery-api.ts'
import { answer, type Route } from './route.ts'

export const challengeRoute = (deps: ChallengeDeps): Route => ({
  method: 'POST',
  path: '/v1/challenge',
  access: 'anyone',
  summary: 'A signed statement of the time, to prove a recovery key on',
  body: ChallengeRequest,
  answer: ChallengeResponse,
  handle: async (call) => {
    const { nonce, node_id: node = null } = call.body as ChallengeRequest
    return answer({ challenge: issueChallenge(deps, { nonce, node }) })
  },
})
