// Where a Prometheus may scrape a node.

import { scrapeApi } from '#wire/node/scrape-api.ts'
import type { NodeDetail } from '#wire/node/node-api.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { connect, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { changeAll } from './ask-each.ts'
import { changing, onNodes, type NodeVerbOptions } from './on-nodes.ts'

type ScrapeOptions = NodeVerbOptions & { readonly remove?: boolean }

/** An address is of one node. To remove one, nodes may be chosen by a selector. */
export const nodeScrapeAddress = async (cli: Cli, options: ScrapeOptions, words: readonly string[]): Promise<void> => {
  const [id, address, ...more] = words
  const removes = options.remove === true || options.apply !== undefined
  if (removes && !words.some((word) => word.includes(':'))) return removeAddresses(cli, options, words)
  if (removes || id === undefined || address === undefined || more.length > 0)
    throw usageFailure('Give HOST:PORT, or --remove: muster node scrape-address ID HOST:PORT')
  const node = await setAddress(connect(cli, options), id, address)
  if (node instanceof Failure) throw node
  printer(cli, options).answer(node, () => [addressLine(node)])
}

const setAddress = (plane: OperatorClient, id: string, address: string | null) =>
  plane.tryAsk(scrapeApi.setAddress, { params: { id }, body: { address }, about: { ID: id } })

const addressLine = ({ id, scrape_address: address = null }: NodeDetail): string =>
  address === null ? `${id}: no scrape address` : `${id}: scrape address ${address}`

const removeAddresses = onNodes<ScrapeOptions>({
  verb: 'scrape-address',
  kind: 'change-nodes',
  actionOn: changing(() => ({ verb: 'drop-scrape-address' })),
  onIds: async (cli, options, ids) => {
    const [id, ...more] = ids
    if (id === undefined || more.length > 0)
      return changeAll<NodeDetail>(
        cli,
        options,
        ids,
        (plane, one) => setAddress(plane, one, null),
        () => ['no scrape address', ''],
      )
    const node = await setAddress(connect(cli, options), id, null)
    if (node instanceof Failure) throw node
    printer(cli, options).answer(node, () => [addressLine(node)])
  },
})
