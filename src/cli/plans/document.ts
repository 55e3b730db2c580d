// `muster export` and `muster apply`: what a domain is set up with, as one file.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { documented, performs } from '#cli/kit/verb.ts'
import { counted } from '#domain/core/in-words.ts'
import { documentApi } from '#wire/plans/document-api.ts'
import { printPlans, requestApply } from './plan.ts'

export const declareExport = (command: Command, cli: Cli): void => {
  documented(command, [
    ['muster export > fleet.yaml', 'to keep under version control'],
    ['muster export | muster apply -f - --plan', 'changes nothing'],
    ['muster export -o json', 'the same as JSON'],
  ])
  performs(cli, command, exportDocument)
}

export const declareApply = (command: Command, cli: Cli): void => {
  documented(command, [
    ['muster apply -f fleet.yaml', 'what it would change, as a plan'],
    ['muster plan apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'does it, whole or not at all, unless something has changed'],
    ['muster apply -f fleet.yaml --yes', 'both at once'],
    ['muster apply -f fleet.yaml --prune', 'also deletes what its sections leave out'],
  ])
    .requiredOption('-f, --file <file>', 'a document as muster export prints it, YAML or JSON (- for standard input)')
    .option('--plan', 'show what it would do, and do nothing (as without --yes)')
    .option('--prune', 'delete what the sections of the document leave out; sections it lacks are not looked at')
    .option('--yes', 'do it at once')
    .addHelpText('after', applyHelp)
  performs(cli, command, applyDocument)
}

const applyHelp = `Exit code ${exitCodes.onlyPlanned}: nothing was done, a plan was made; 0: done, or everything is as the document says

A document; what is left out of a thing that is there stays as it is:
  apiVersion: muster/v1
  domain: {livenessGraceMs: 10m}
  profiles:
    - {name: edge, certificate: {lifetimeMs: 12h}}
  hardwareProfiles:
    - {tag: h100, firmware: slice-vm, slots: 8, sku: h100-slice}
  vclusters:
    - {name: training, peering: isolated, services: [{name: worker, command: [/usr/bin/worker]}]}
  workerIssuers:
    - {name: east, iss: https://k8s.example, aud: muster, sub: system:serviceaccount:p:w, jwks: '{"keys": [...]}'}
Keys are those of profile set, domain set and vcluster apply; muster export shows all of them.`

const exportDocument = async (cli: Cli, options: GlobalOptions): Promise<void> => {
  const document = await connect(cli, options).ask(documentApi.export)
  if (options.output === 'json') return printer(cli, options).answer(document, () => [])
  const { documentYaml } = await import('./document-text.ts')
  cli.out.write(documentYaml(document))
}

type ApplyOptions = GlobalOptions & {
  readonly file: string
  readonly plan?: boolean
  readonly prune?: boolean
  readonly yes?: boolean
}

/** A plan with changes to profiles reads all their nodes. */
const timeoutMs = 600_000

const applyDocument = async (cli: Cli, options: ApplyOptions): Promise<void> => {
  const { file, plan: onlyPlan = false, prune = false, yes = false } = options
  if (onlyPlan && yes) throw usageFailure('--plan shows and --yes does: give one of them.')
  const { readDocument } = await import('./document-text.ts')
  const { document, withLine } = await readDocument(cli, file)
  const body = { document, ...(prune ? { prune } : {}) }
  const planned = await connect(cli, options).tryAsk(documentApi.plan, { body, timeoutMs })
  if (planned instanceof Failure) throw withLine(planned)
  const { plan, unchanged } = planned
  if (plan === null) {
    printer(cli, options).answer(planned, () => [
      `nothing to change: ${counted(unchanged, 'thing is', 'things are')} as ${file === '-' ? 'standard input' : file} says`,
    ])
    return
  }
  if (yes) return requestApply(cli, options, plan.id, null)
  printPlans(cli, options, [plan])
  cli.exit.finish(exitCodes.onlyPlanned)
}
