// `muster node repair-bundle`: an emergency credential, carried to the machine by hand.

import { createFile } from '#platform/folder.ts'
import { pathExists } from '#platform/paths.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { nodeName } from '#cli/kit/node-name.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { nodeActionApi } from '#wire/node/node-action-api.ts'

type Options = GlobalOptions & { readonly reason: string; readonly out: string }

export const nodeRepairBundle = async (cli: Cli, options: Options, id: string): Promise<void> => {
  const node = nodeName(id)
  // Looked at first: making a bundle quarantines the node and voids the bundle before.
  if (pathExists(options.out)) throw taken(options.out)
  const bundle = await connect(cli, options).ask(nodeActionApi.repairBundle, {
    params: { id: node },
    body: { reason: options.reason },
    about: { ID: node },
  })
  if (createFile(options.out, JSON.stringify(bundle, null, 1) + '\n', 0o600) === 'exists') throw taken(options.out)

  const { id: bundleId, expires_at: expiresAt } = bundle.issued
  const print = printer(cli, options)
  print.answer({ node, file: options.out, id: bundleId, expires_at: expiresAt }, () => [options.out])
  print.note(`${node} is in quarantine; repair bundle ${bundleId} is good once, until ${expiresAt}`)
  print.note(`next: carry it to the machine, there: muster agent repair --bundle-file FILE`)
  print.note(`then, when muster node show ${node} says that its evidence has passed: muster node release ${node}`)
}

const taken = (file: string) => usageFailure(`${file} is there already: choose another name for --out.`)
