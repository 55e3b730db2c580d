// `muster issuer`: who signs certificates beside the authority of the domain.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { fillIn, usageFailure } from '#cli/kit/failure.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderFacts } from '#cli/kit/table.ts'
import { durationOption } from '#cli/kit/arguments.ts'
import { collect, lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { counted, durationWords } from '#domain/core/in-words.ts'
import { clockWords } from '#domain/issuers/issuer-clock.ts'
import { issuerApi, type IssuerTest, type IssuerView, type OrphanView } from '#wire/issuers/issuer-api.ts'
import { declareMigrate } from './migrate.ts'
import { requestFrom, withIssuerOptions, type IssuerOptions } from './issuer-options.ts'

const stepCa =
  'muster issuer add corp --at https://ca.internal:9000 --server-ca root_ca.crt --roots root_ca.crt --provisioner muster --renewal-provisioner muster-renewal --provisioner-key file:muster.jwk'
const vault =
  "muster issuer add vault --at https://vault.internal:8200 --server-ca vault-ca.pem --roots pki-ca.pem --mount pki --role '*=muster-node' --auth approle --role-id 5a1c... --secret-id env:VAULT_SECRET_ID"

export const declareIssuer = (issuer: Command, cli: Cli): void => {
  noun(issuer, [
    ['muster issuer list', ''],
    ['muster issuer show built-in', ''],
    ['muster issuer test corp', 'until it passes, no profile may name it'],
    ['muster profile set edge certificate.issuer=corp', 'its nodes take it up with their next renewal'],
  ])
  const list = verb(issuer, 'list', 'List issuers, and how they answer', [['muster issuer list', '']])
  performs(cli, lists(list, columns), issuerList)

  const show = verb(issuer, 'show <name>', 'Show an issuer, what it can do and who uses it', [
    ['muster issuer show corp', ''],
  ])
  performs(cli, show, issuerShow)

  const add = verb(issuer, 'add <name>', 'Add an outside issuer: a step-ca or a Vault', [
    [stepCa, ''],
    [vault, ''],
  ])
  performs(cli, withIssuerOptions(add), issuerAdd)

  const set = verb(issuer, 'set <name>', 'Change an outside issuer; what is left out stays as it is', [
    ['muster issuer set vault --secret-id credential:vault-secret-id', 'a new secret'],
    ['muster issuer set corp --at https://ca2.internal:9000', 'it has moved'],
    ['muster issuer set vault --role output:web=web', 'one more role; the others stay'],
  ])
  performs(cli, withIssuerOptions(set), issuerSet)

  const test = verb(issuer, 'test <name>', 'Sign and revoke a throw-away leaf there; says which setting is wrong', [
    ['muster issuer test corp', 'with the profiles that name it, or the default one'],
    ['muster issuer test corp --profile edge --lifetime 48h', 'before the profile is changed'],
    ['muster issuer test corp --output-name web --worker-issuer east', 'before they name it'],
  ])
    .option('--profile <name>', 'a leaf like those of this profile; may be repeated', collect)
    .option('--output-name <name>', 'a leaf like those of this output; may be repeated', collect)
    .option('--worker-issuer <name>', 'a leaf like those of its workers; may be repeated', collect)
    .option('--lifetime <duration>', 'that lasts so long, instead of what the profile has')
  performs(cli, test, issuerTest)

  const disable = verb(issuer, 'disable <name>', 'Sign nothing more there; what is to be revoked still is', [
    ['muster issuer disable corp --reason "its key may be known"', 'renewals wait; certificates go on until they end'],
  ]).requiredOption('--reason <text>', 'why; goes into the journal')
  performs(cli, disable, issuerDisable)

  const enable = verb(issuer, 'enable <name>', 'Sign there again', [['muster issuer enable corp', '']])
  performs(cli, enable, issuerEnable)

  const retire = verb(issuer, 'retire <name>', 'End an issuer that nothing uses; its secrets are dropped', [
    ['muster issuer retire corp', 'refused while a profile names it, or a certificate of it has not expired'],
  ])
  performs(cli, retire, issuerRetire)

  const orphans = verb(
    issuer,
    'orphans',
    'List certificates that were signed outside, or may have been, and that no node got',
    [['muster issuer orphans', '']],
  )
  performs(cli, lists(orphans, orphanColumns), issuerOrphans)

  declareMigrate(issuer, cli)
}

const issuerList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const { issuers: items } = await connect(cli, options).ask(issuerApi.list)
  showList(cli, options, { items, columns, body: (issuers) => ({ issuers }) })
}

const issuerShow = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> =>
  show(cli, options, await connect(cli, options).ask(issuerApi.show, { params: { name }, about: { NAME: name } }))

const issuerAdd = async (cli: Cli, options: IssuerOptions, name: string): Promise<void> => {
  const { url, server_roots: serverRoots, roots, secrets, ...kind } = await requestFrom(cli, options)
  if (url === undefined || serverRoots === undefined || roots === undefined)
    throw usageFailure('An issuer takes --at, --server-ca and --roots.', 'muster issuer add --help')
  const body = { name, url, server_roots: serverRoots, roots, ...kind, secrets: secrets ?? {} }
  show(cli, options, await connect(cli, options).ask(issuerApi.add, { body, about: { NAME: name } }))
  printer(cli, options).note(`next: muster issuer test ${name}`)
}

const issuerSet = async (cli: Cli, options: IssuerOptions, name: string): Promise<void> => {
  const plane = connect(cli, options)
  const about = { NAME: name }
  const body = await requestFrom(cli, options, () => plane.ask(issuerApi.show, { params: { name }, about }))
  if (Object.keys(body).length === 0) throw usageFailure('Nothing is to be changed.', 'muster issuer set --help')
  show(cli, options, await plane.ask(issuerApi.set, { params: { name }, body, about }))
}

type TestOptions = GlobalOptions & {
  readonly profile?: readonly string[]
  readonly outputName?: readonly string[]
  readonly workerIssuer?: readonly string[]
  readonly lifetime?: string
}

const issuerTest = async (cli: Cli, options: TestOptions, name: string): Promise<void> => {
  const { profile, outputName, workerIssuer, lifetime } = options
  const body = {
    ...(profile !== undefined && { profiles: [...profile] }),
    ...(outputName !== undefined && { outputs: [...outputName] }),
    ...(workerIssuer !== undefined && { worker_issuers: [...workerIssuer] }),
    ...(lifetime !== undefined && { lifetime_ms: durationOption('--lifetime', lifetime) }),
  }
  const tested = await connect(cli, options).ask(issuerApi.test, { params: { name }, body, about: { NAME: name } })
  printer(cli, options).answer(tested, () => testLines(tested, options))
  if (!tested.passed) cli.exit.finish(exitCodes.refused)
}

const issuerDisable = async (
  cli: Cli,
  options: GlobalOptions & { readonly reason: string },
  name: string,
): Promise<void> => {
  const asked = { params: { name }, body: { reason: options.reason }, about: { NAME: name } }
  show(cli, options, await connect(cli, options).ask(issuerApi.disable, asked))
}

const issuerEnable = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> =>
  show(cli, options, await connect(cli, options).ask(issuerApi.enable, { params: { name }, about: { NAME: name } }))

const issuerRetire = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const retired = await connect(cli, options).ask(issuerApi.retire, { params: { name }, about: { NAME: name } })
  printer(cli, options).answer(retired, () => [`${retired.name} has retired`])
}

/** More are asked for by page. */
const page = 1000

const issuerOrphans = async (cli: Cli, options: ListOptions): Promise<void> => {
  const plane = connect(cli, options)
  const items: OrphanView[] = []
  for (let after: string | null = null; ;) {
    const query: { readonly limit: number; readonly after?: string } = { limit: page, ...(after !== null && { after }) }
    const { orphans, next } = await plane.ask(issuerApi.orphans, { query })
    items.push(...orphans)
    if (next === null) break
    after = next
  }
  showList(cli, options, { items, columns: orphanColumns, body: (orphans) => ({ orphans, next: null }) })
}

const stateText = ({ state, tested_at: tested, kind }: IssuerView): string =>
  state === 'enabled' && kind !== 'built-in' && tested === null ? 'untested' : state

const healthText = ({ health }: IssuerView): string => {
  if (health === null) return ''
  if (health.away_since !== null) return `away since ${health.away_since}: ${health.away_because ?? ''}`
  if (health.answered_at === null) return 'nothing ordered yet'
  const wait = health.waiting === 0 ? '' : `, ${health.waiting} wait`
  const clock = clockWords(health.clock_ahead_ms)
  const refusal =
    health.refused_at === null ? '' : `; refused an order at ${health.refused_at}: ${health.refused_because ?? ''}`
  return `${health.answers_per_second} a second${wait}${clock === null ? '' : `; ${clock}`}${refusal}`
}

const columns: readonly Column<IssuerView>[] = [
  { name: 'name', cell: ({ name }) => name },
  { name: 'kind', cell: ({ kind }) => kind },
  { name: 'state', cell: stateText },
  { name: 'address', cell: ({ url }) => url ?? '' },
  { name: 'profiles', cell: ({ profiles }) => profiles.join(',') },
  { name: 'here', cell: healthText },
  {
    name: 'to-revoke',
    cell: ({ revocations_waiting: count }) => (count === 0 ? '' : String(count)),
    value: ({ revocations_waiting: count }) => count,
  },
]

const orphanColumns: readonly Column<OrphanView>[] = [
  { name: 'serial', cell: ({ serial }) => serial ?? '' },
  { name: 'issuer', cell: ({ issuer }) => issuer },
  { name: 'subject', cell: ({ subject }) => subject },
  { name: 'fate', cell: ({ fate }) => fate },
  { name: 'revoked', cell: ({ revocation }) => revocation ?? '' },
  { name: 'until', cell: ({ until }) => until },
  { name: 'key', cell: ({ key }) => key, wide: true },
  { name: 'order', cell: ({ order }) => order, wide: true },
]

const testLines = ({ passed, faults, issuer }: IssuerTest, options: TestOptions): string[] => {
  // One command often makes several settings right.
  if (!passed)
    return [...Map.groupBy(faults, ({ fix }) => fix)].flatMap(([fix, all]) => [
      ...all.map(({ setting, why }) => `${setting}: ${why}`),
      `  ${fillIn(fix, { ISSUER: issuer.name })}`,
    ])
  const clock = clockWords(issuer.health?.clock_ahead_ms ?? null)
  return [
    `${issuer.name} signed and revoked what was asked`,
    ...namingLines(issuer.name, options),
    ...(clock === null ? [] : [`${clock}: set the one right that is wrong`]),
  ]
}

/** What it was tested for may name it. */
const namingLines = (name: string, { profile, outputName = [], workerIssuer = [] }: TestOptions): string[] => {
  const isForProfiles = profile !== undefined || outputName.length + workerIssuer.length === 0
  return [
    ...(isForProfiles ? [`a profile may name it: muster profile set PROFILE certificate.issuer=${name}`] : []),
    ...outputName.map((output) => `output ${output} may name it: "issuer":"${name}" in outputs`),
    ...workerIssuer.map((one) => `workers of ${one} may: muster worker-issuer set ${one} --signed-by ${name}`),
  ]
}

const yesNo = (value: boolean | null, yes: string, no: string): string =>
  value === null ? 'not known yet' : value ? yes : no

const show = (cli: Cli, options: GlobalOptions, view: IssuerView): void =>
  printer(cli, options).answer(view, () =>
    renderFacts([
      ['issuer', `${view.name} (${view.kind})`],
      [
        'state',
        view.disabled === null
          ? stateText(view)
          : `disabled since ${view.disabled.since} by ${view.disabled.by}: ${view.disabled.reason}`,
      ],
      ...(view.url === null ? [] : outsideFacts(view, view.url)),
      ['profiles', view.profiles.length === 0 ? 'none' : view.profiles.join(', ')],
      ...(view.outputs.length === 0 ? [] : [['outputs', view.outputs.join(', ')] as const]),
      ...(view.worker_issuers.length === 0 ? [] : [['worker issuers', view.worker_issuers.join(', ')] as const]),
    ]),
  )

type Fact = readonly [name: string, value: string | readonly string[]]

const outsideFacts = (view: IssuerView, url: string): readonly Fact[] => [
  ['address', url],
  ['settings', settingLines(view)],
  ['secrets', view.secrets.join(', ')],
  ['roots', view.roots.map(({ subject, fingerprint, not_after: end }) => `${subject}, ${fingerprint}, until ${end}`)],
  ...(view.renewal_root === null ? [] : [['renewal root', view.renewal_root.trimEnd().split('\n')] as const]),
  ['tested', view.tested_at ?? 'no test has passed'],
  ['serial', yesNo(view.takes_serial, 'ours', 'the issuer chooses')],
  ['revokes', yesNo(view.revokes, 'yes', 'no')],
  ['longest', view.longest_lifetime_ms === null ? 'not known' : durationWords(view.longest_lifetime_ms)],
  ['status', statusLines(view)],
  ['here', healthText(view)],
  [
    'to revoke',
    view.revocations_waiting === 0
      ? 'nothing waits'
      : `${counted(view.revocations_waiting, 'certificate')}, the oldest since ${view.revocations_waiting_since ?? '?'}`,
  ],
  ['added', `${view.added_at ?? '?'} by ${view.added_by ?? '?'}`],
]

const settingLines = ({ step_ca: step, vault: at }: IssuerView): readonly string[] => [
  ...(step === null ? [] : [`provisioner ${step.provisioner}`, `provisioner for renewals ${step.renewal_provisioner}`]),
  ...(at === null
    ? []
    : [
        `engine ${at.mount}${at.namespace === undefined ? '' : ` in namespace ${at.namespace}`}`,
        ...at.roles.map(({ profile, role }) => `role ${role} for ${profile === '*' ? 'all other profiles' : profile}`),
        `login by ${at.auth}${at.auth_mount === undefined ? '' : ` at ${at.auth_mount}`}`,
      ]),
]

/** Who answers whether one of its leaves is revoked. */
const statusLines = ({ status }: IssuerView): string | readonly string[] => {
  if (status === null) return 'not known before its first leaf'
  const { ocsp, crl } = status
  if (ocsp.length + crl.length === 0) return 'nobody answers for its leaves'
  return [...ocsp.map((url) => `OCSP ${url}`), ...crl.map((url) => `CRL ${url}`)]
}
