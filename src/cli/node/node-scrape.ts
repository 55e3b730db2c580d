// Where a Prometheus may scrape a node.

import { scrapeApi } from '#wire/node/scrape-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'

export const nodeScrapeAddress = async (
  cli: Cli,
  options: GlobalOptions & { readonly remove?: boolean },
  id: string,
  given: string | undefined,
): Promise<void> => {
  if ((given === undefined) !== (options.remove === true)) {
    throw usageFailure('Give HOST:PORT, or --remove: muster node scrape-address ID HOST:PORT')
  }
  const plane = connect(cli, options)
  const node = await plane.ask(scrapeApi.setAddress, {
    params: { id },
    body: { address: given ?? null },
    about: { ID: id },
  })
  const { scrape_address: address = null } = node
  printer(cli, options).answer(node, () => [
    address === null ? `${id}: no scrape address` : `${id}: scrape address ${address}`,
  ])
}
