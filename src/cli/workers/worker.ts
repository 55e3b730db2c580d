// `muster worker`: programs that queue tasks, with certificates of their own.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { connect, everyPage } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { lists, loads, noun, performs, verb } from '#cli/kit/verb.ts'
import { receiptProgress } from '#cli/revocation/receipt-lines.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { workerIdShape } from '#wire/workers/worker-api.ts'
import { workerOperatorApi, type WorkerView } from '#wire/workers/worker-operator-api.ts'

export const declareWorker = (worker: Command, cli: Cli): void => {
  noun(worker, [
    ['muster worker list', ''],
    ['muster worker revoke east.5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21 --reason "left the team"', ''],
  ])
  const list = verb(worker, 'list', 'List workers: who vouches for them, and until when their certificates are good', [
    ['muster worker list', ''],
    ['muster worker list --issuer east', ''],
  ]).option('--issuer <name>', 'only those of this worker issuer')
  performs(cli, lists(list, columns), workerList)

  const show = verb(worker, 'show <id>', 'Show one worker', [
    ['muster worker show east.5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21', ''],
  ])
  performs(cli, show, workerShow)

  const revoke = verb(worker, 'revoke <id>', 'Revoke a worker: it is refused at once on every replica, for good', [
    ['muster worker revoke east.5f0c5d9e-9d3a-4c64-8f1b-0a4d8f6c7b21 --reason "token leaked"', ''],
  ]).requiredOption('--reason <text>', 'why, for the journal')
  performs(cli, revoke, workerRevoke)

  const run = verb(worker, 'run <command...>', 'Run a program with the certificate of a worker, and keep it fresh', [
    [
      'muster worker run --plane https://muster.internal:8443 --roots roots.pem --token-file /var/run/secrets/muster/token --folder /run/muster -- provisioner',
      'its files are in /run/muster/worker: key.pem, cert.pem, roots.pem',
    ],
  ])
    .requiredOption('--plane <url>', 'the node listener of the plane: https://HOST:PORT')
    .requiredOption('--roots <file>', 'roots of the domain, PEM: muster ca bundle')
    .requiredOption('--token-file <file>', 'the service-account token; read again at every renewal')
    .requiredOption('--folder <folder>', 'where key, certificate and roots are laid down')
  loads(cli, run, async () => (await import('./worker-run.ts')).workerRun)
}

type WorkerListOptions = ListOptions & { readonly issuer?: string }

const workerList = async (cli: Cli, options: WorkerListOptions): Promise<void> => {
  const plane = connect(cli, options)
  const { issuer } = options
  const workers = await everyPage(
    (after) => plane.ask(workerOperatorApi.list, { query: { issuer, after, limit: 500 } }),
    (page) => page.workers,
  )
  showList(cli, options, { items: workers, columns, body: (shown) => ({ workers: shown }) })
  if (workers.length === 0) printer(cli, options).note('there are none; see: muster worker-issuer --help')
}

const columns: readonly Column<WorkerView>[] = [
  { name: 'id', cell: ({ id }) => id },
  { name: 'state', cell: ({ state }) => state },
  { name: 'subject', cell: ({ subject }) => subject },
  { name: 'until', cell: ({ certificate }) => certificate.not_after },
  { name: 'enrolled', cell: ({ enrolled_at: at }) => at },
]

const idOf = (text: string): string => {
  if (new RegExp(workerIdShape).test(text)) return text
  throw usageFailure(`${text} is not the id of a worker.`, 'List what there is: muster worker list')
}

const workerShow = async (cli: Cli, options: GlobalOptions, text: string): Promise<void> => {
  const id = idOf(text)
  const worker = await connect(cli, options).ask(workerOperatorApi.show, { params: { id }, about: { ID: id } })
  printer(cli, options).answer(worker, () => renderFacts(factsOf(worker)))
}

const factsOf = (worker: WorkerView): [string, string][] => [
  ['worker', worker.id],
  ['state', worker.state],
  ['issuer', worker.issuer],
  ['subject', worker.subject],
  ['instance', worker.instance],
  ['enrolled', worker.enrolled_at],
  ['certificate', `${worker.certificate.serial}, good until ${worker.certificate.not_after}`],
  ['fingerprint', worker.certificate.fingerprint],
  ...(worker.revoked === null
    ? []
    : [['revoked', `${worker.revoked.at} by ${worker.revoked.by}: ${worker.revoked.reason}`] as [string, string]]),
]

const workerRevoke = async (
  cli: Cli,
  options: GlobalOptions & { readonly reason: string },
  text: string,
): Promise<void> => {
  const id = idOf(text)
  const given = { params: { id }, body: { reason: options.reason }, about: { ID: id } }
  const answer = await connect(cli, options).ask(workerOperatorApi.revoke, given)
  const { worker, receipt } = answer
  const print = printer(cli, options)
  print.answer(answer, () =>
    renderFacts([...factsOf(worker), ['receipt', `${receipt.id}: ${receiptProgress(receipt)}`]]),
  )
  if (receipt.effective_at !== null) return
  print.note(`not effective everywhere yet: muster receipt show ${receipt.id} --wait 30s`)
  cli.exit.finish(exitCodes.notEffective)
}
