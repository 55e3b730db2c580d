// Of planes whose profiles are all signed by the authority of the domain.

import type { Signers } from '#plane/identity/issue.ts'

export const noOrders: Signers['orders'] = {
  choose: async ({ certificate }) => ({ issuer: certificate.issuer, reads: [], hasOther: false }),
  stillSigns: async () => [],
  place: async () => {
    throw new Error('nothing is ordered from an outside issuer here')
  },
}
