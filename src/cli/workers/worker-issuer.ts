// `muster worker-issuer`: whose service-account tokens make workers, and what those may queue.

import type { Command } from 'commander'
import { readText } from '#cli/kit/arguments.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printable } from '#cli/kit/printable.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { parseJwks } from '#pki/jwt.ts'
import { allFromPem } from '#pki/pem.ts'
import {
  workerIssuerApi,
  type ChangeWorkerIssuerRequest,
  type WorkerIssuerView,
} from '#wire/workers/worker-issuer-api.ts'

const added =
  'muster worker-issuer add east --iss https://cluster.east --aud muster --sub system:serviceaccount:provisioning:worker --jwks-url https://cluster.east/openid/v1/jwks --jwks-ca east-ca.pem --types run,service --vclusters blue'

export const declareWorkerIssuer = (issuer: Command, cli: Cli): void => {
  noun(issuer, [
    [added, 'pods of that service account become workers'],
    ['muster worker-issuer list', ''],
  ])
  const add = verb(issuer, 'add <name>', 'Add a worker issuer: bearers of its tokens become workers', [
    [added, ''],
    [
      'muster worker-issuer add ci --iss https://ci.internal --aud muster --sub deploy --jwks-file ci.json',
      'its tokens need the claim kubernetes.io.pod.uid',
    ],
  ])
    .requiredOption('--iss <text>', 'the issuer, exactly as its tokens have it')
    .requiredOption('--aud <text>', 'the audience; a token that has another one as well is refused')
    .requiredOption('--sub <text>', 'the subject: one service account, no pattern')
  performs(cli, withRest(add), issuerAdd)

  const set = verb(issuer, 'set <name>', 'Change a worker issuer; what is left out stays as it is', [
    ['muster worker-issuer set east --types run,service,reboot', ''],
    ['muster worker-issuer set ci --jwks-file ci.json', 'its keys have changed'],
  ])
    .option('--iss <text>', 'the issuer')
    .option('--aud <text>', 'the audience')
    .option('--sub <text>', 'the subject')
  performs(cli, withRest(set), issuerSet)

  const list = verb(issuer, 'list', 'List worker issuers', [['muster worker-issuer list', '']])
  performs(cli, lists(list, columns), issuerList)

  const show = verb(issuer, 'show <name>', 'Show a worker issuer, and whether its keys can be fetched', [
    ['muster worker-issuer show east', ''],
  ])
  performs(cli, show, issuerShow)

  const remove = verb(issuer, 'remove <name>', 'Remove a worker issuer: its workers are refused from now on', [
    ['muster worker-issuer remove east', ''],
  ])
  performs(cli, remove, issuerRemove)
}

const withRest = (command: Command): Command =>
  command
    .option('--jwks-file <file>', 'its public keys, a JWKS; - for standard input')
    .option('--jwks-url <url>', 'where the plane fetches them: https://HOST/PATH')
    .option('--jwks-ca <file>', 'with --jwks-url: the CA of that server, PEM')
    .option('--types <list>', 'types of tasks that its workers may queue, with commas; none: ""')
    .option('--vclusters <list>', 'on nodes of these vClusters, with commas; none: ""')
    .option('--signed-by <name>', 'the issuer of their certificates: built-in, or an outside one')

type IssuerOptions = GlobalOptions & {
  readonly iss?: string
  readonly aud?: string
  readonly sub?: string
  readonly jwksFile?: string
  readonly jwksUrl?: string
  readonly jwksCa?: string
  readonly types?: string
  readonly vclusters?: string
  readonly signedBy?: string
}

const longestFile = 65_536

const givenBy = async (cli: Cli, options: IssuerOptions): Promise<ChangeWorkerIssuerRequest> => {
  const { iss, aud, sub, jwksFile, jwksUrl, jwksCa, types, vclusters, signedBy } = options
  if ((jwksUrl === undefined) !== (jwksCa === undefined)) throw usageFailure('--jwks-url and --jwks-ca go together.')
  if (jwksFile !== undefined && jwksUrl !== undefined) throw usageFailure('Either --jwks-file or --jwks-url.')
  return {
    ...(iss !== undefined && { iss }),
    ...(aud !== undefined && { aud }),
    ...(sub !== undefined && { sub }),
    ...(jwksFile !== undefined && { jwks: await keySetIn(cli, jwksFile) }),
    ...(jwksUrl !== undefined && jwksCa !== undefined && { jwks_url: jwksUrl, ca: await rootsIn(cli, jwksCa) }),
    ...(types !== undefined && { types: listIn(types) }),
    ...(vclusters !== undefined && { vclusters: listIn(vclusters) }),
    ...(signedBy !== undefined && { signed_by: signedBy }),
  }
}

/** The plane would name the field of the API. */
const keySetIn = async (cli: Cli, file: string): Promise<string> => {
  const text = await readText(cli, file, longestFile)
  const parsed = parseJwks(text)
  const next = 'A Kubernetes cluster prints its own: kubectl get --raw /openid/v1/jwks'
  if (parsed.kind === 'malformed')
    throw usageFailure(`--jwks-file ${file} is no JSON Web Key Set: ${parsed.why}.`, next)
  if (parsed.keys.length === 0)
    throw usageFailure(`--jwks-file ${file} has no key for RS256 or ES256 with an id (kid).`, next)
  return text
}

const rootsIn = async (cli: Cli, file: string): Promise<string> => {
  const text = await readText(cli, file, longestFile)
  if (allFromPem('CERTIFICATE', text) === null)
    throw usageFailure(`--jwks-ca ${file} holds something that is no certificate in PEM.`)
  return text
}

const listIn = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')

const issuerAdd = async (
  cli: Cli,
  options: IssuerOptions & { readonly iss: string; readonly aud: string; readonly sub: string },
  name: string,
): Promise<void> => {
  const { iss, aud, sub, jwksFile, jwksUrl, jwksCa } = options
  if ([jwksFile, jwksUrl, jwksCa].every((given) => given === undefined))
    throw usageFailure(
      'Where are its keys? Either --jwks-file, or --jwks-url together with --jwks-ca.',
      'muster worker-issuer add --help',
    )
  const body = { name, types: [], vclusters: [], ...(await givenBy(cli, options)), iss, aud, sub }
  const issuer = await connect(cli, options).ask(workerIssuerApi.add, { body, about: { NAME: name } })
  show(cli, options, issuer)
}

const issuerSet = async (cli: Cli, options: IssuerOptions, name: string): Promise<void> => {
  const body = await givenBy(cli, options)
  if (Object.keys(body).length === 0) throw usageFailure('Nothing is to be changed.', 'muster worker-issuer set --help')
  const issuer = await connect(cli, options).ask(workerIssuerApi.set, { params: { name }, body, about: { NAME: name } })
  show(cli, options, issuer)
}

const issuerRemove = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const removed = await connect(cli, options).ask(workerIssuerApi.remove, { params: { name }, about: { NAME: name } })
  printer(cli, options).answer(removed, () => [
    `worker issuer ${printable(removed.name)} removed; its workers are refused from now on`,
  ])
}

const issuerShow = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> =>
  show(cli, options, await connect(cli, options).ask(workerIssuerApi.show, { params: { name }, about: { NAME: name } }))

const issuerList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const { worker_issuers: items } = await connect(cli, options).ask(workerIssuerApi.list)
  showList(cli, options, { items, columns, body: (shown) => ({ worker_issuers: shown }) })
  if (items.length === 0) printer(cli, options).note('there are none; see: muster worker-issuer --help')
}

const keysText = ({ jwks_url: url, keys }: WorkerIssuerView): string => {
  const from = url ?? 'given by an operator'
  if (keys.trouble !== null) return `${from}: ${keys.trouble}`
  return keys.fetched_at === null ? from : `${from}, ${keys.count} since ${keys.fetched_at}`
}

const columns: readonly Column<WorkerIssuerView>[] = [
  { name: 'name', cell: ({ name }) => name },
  { name: 'issuer', cell: ({ iss }) => iss },
  { name: 'audience', cell: ({ aud }) => aud },
  { name: 'subject', cell: ({ sub }) => sub },
  { name: 'types', cell: ({ types }) => types.join(',') },
  { name: 'vclusters', cell: ({ vclusters }) => vclusters.join(',') },
  { name: 'keys', cell: keysText },
]

const show = (cli: Cli, options: GlobalOptions, issuer: WorkerIssuerView): void =>
  printer(cli, options).answer(issuer, () =>
    renderFacts([
      ['worker issuer', issuer.name],
      ['issuer', issuer.iss],
      ['audience', issuer.aud],
      ['subject', issuer.sub],
      ['keys', keysText(issuer)],
      ['task types', issuer.types.length === 0 ? 'none' : issuer.types.join(', ')],
      ['vclusters', issuer.vclusters.length === 0 ? 'none' : issuer.vclusters.join(', ')],
      ['signed by', issuer.signed_by ?? 'built-in'],
      ['added', `${issuer.created_at} by ${issuer.created_by}`],
    ]),
  )
