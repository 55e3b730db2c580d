// `muster ca`: the certificate authority, asked of the plane. What needs the keys themselves: ca-offline.ts.

import { Option, type Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { noun, loads, performs, plans, verb } from '#cli/kit/verb.ts'
import { settingOptions } from '#cli/kit/setting-options.ts'
import { planeOptions } from '#cli/plane/plane.ts'
import { keyHostSettings } from '#plane/config/key-settings.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { type CaView, caApi } from '#wire/ca/ca-api.ts'
import { formatAgo, formatSpan } from '#cli/kit/duration.ts'
import { localAddressIn, localWarning } from '#cli/kit/local-address.ts'
import { resolveConnection } from '#cli/kit/connection.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { type Paint, printer } from '#cli/kit/print.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan.ts'
import { printable, pemLines } from '#cli/kit/printable.ts'
import { readText } from '#cli/kit/arguments.ts'
import { renderFacts, renderHeadedTable, type Cell } from '#cli/kit/table.ts'
import { keyId } from '#pki/keys.ts'
import { allFromPem } from '#pki/pem.ts'
import { pathExists } from '#platform/paths.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { caCrl, caStatus, noProgramsYet } from './certificate-status.ts'

/** As a plane that waits for its first CA names it (plane/foundation/first-ceremony.ts). */
const firstRequestFile = 'intermediate.csr'

/** The tokens and the Vault of this machine, as a plane names them. */
const tokenOptions = (command: Command): Command => settingOptions(command, keyHostSettings)

export const declareCa = (ca: Command, cli: Cli): void => {
  noun(ca, [
    ['muster ca show', ''],
    ['muster ca bundle > roots.pem', 'what others verify our certificates against'],
  ])
  const init = planeOptions(
    verb(ca, 'init', 'Make the data folder, the root and the first keys, without starting a plane', [
      ['muster ca init', 'root key sealed in ./data'],
      ['muster ca init --root-out /media/usb', 'root key kept off the plane'],
      ['muster ca init --root pkcs11:token=vault;object=root --pkcs11-module /usr/lib/vault.so', 'in a token'],
      [
        'muster ca init --root transit:key=root --vault-address URL --vault-roots vault.pem --vault-secret token',
        'in Vault',
      ],
      ['muster ca init --root-certificate root.crt', 'root key on another machine (muster ca root)'],
    ]),
  )
  loads(cli, init, async () => (await import('./ca-offline.ts')).caInit)

  const show = verb(ca, 'show', 'Show the authorities, which of them sign now, and until when', [
    ['muster ca show', ''],
  ])
  performs(cli, show, caShow)

  const bundle = verb(ca, 'bundle', 'Print the root certificates (PEM)', [
    ['muster ca bundle > roots.pem', ''],
    ['muster ca bundle --join > /etc/muster/join', 'into the image of machines that join by their hardware'],
    ['muster ca bundle --programs > programs.pem', 'for those who verify programs, and no node'],
    ['muster ca bundle --statements > statement-keys.pem', 'for muster agent trust, on hosts with a helper'],
  ])
    .option('--join', 'print a join string without a secret instead, for machines that join by their hardware')
    .option('--programs', 'print the roots of programs instead')
    .option('--statements', 'print the public keys that sign statements instead')
  performs(cli, bundle, caBundle)

  const crl = verb(
    ca,
    'crl',
    'Print the revocation list of an issuing CA (PEM), for those who verify our certificates',
    [
      ['muster ca crl --out /srv/www/muster.crl', 'in a timer; or let them fetch it: muster plane --status-listen'],
      ['muster ca crl --delta', 'what was revoked since the full list before last'],
      ['muster ca crl --programs > programs.crl', 'for those who verify programs: curl --crlfile programs.crl'],
    ],
  )
    .option('--issuer <authority>', 'an AUTHORITY of muster ca show; without it whichever signs now')
    .option('--delta', 'a delta instead of the full list')
    .option('--programs', 'the lists of all authorities of programs instead, in one file')
    .option('--out <file>', 'write it there instead, in one step')
  performs(cli, crl, caCrl)

  const status = verb(ca, 'status <serial>', 'Show whether a certificate is valid, or since when it is not', [
    ['muster ca status 5f:0a:91:c2', 'as openssl x509 -serial prints it, colons or not'],
  ])
  performs(cli, status, caStatus)

  const rotate = verb(ca, 'rotate', 'Replace the issuing key; certificates in use stay valid', [
    ['muster ca rotate', ''],
    [
      'muster ca rotate --compromised 3f9a... --plan',
      'which nodes would lose their certificate, and which could not recover without an operator',
    ],
    ['muster ca rotate --compromised 3f9a... --reason "its backup was stolen"', 'an AUTHORITY of muster ca show'],
  ])
    .option(
      '--compromised <authority>',
      'its key may be compromised: retire it, accept nothing it has signed, and let its nodes recover',
    )
    .option('--reason <text>', 'with --compromised: why; goes into the journal and the alert')
  plans(rotate)
  performs(cli, rotate, caRotate)

  const request = verb(ca, 'request', 'Print a request for a new intermediate, to carry to an offline root', [
    ['muster ca request > intermediate.csr', 'on the plane'],
    ['muster ca request --workers > workers.csr', 'for the authority of workers'],
  ]).option('--workers', 'for the issuing CA of workers instead of that of nodes')
  performs(cli, request, caRequest)

  const root = tokenOptions(
    verb(
      ca,
      'root',
      'Make a root on a machine of its own, with its key in a token, in Vault or in a file; needs no plane',
      [
        ['muster ca root --domain gpu.example --root-key pkcs11:token=vault;object=root > root.crt', 'key in a token'],
        [
          'muster ca root --domain gpu.example --root-key transit:key=root > root.crt',
          'key in Vault (MUSTER_VAULT_ADDRESS, ...)',
        ],
        ['muster ca root --domain gpu.example --root-key root.key > root.crt', 'key in a file that is taken away'],
      ],
    ),
  )
    .requiredOption(
      '--root-key <key>',
      'where its key is made: pkcs11:token=LABEL;object=LABEL, transit:key=NAME, or a new file',
    )
    .requiredOption('--domain <name>', 'the trust domain')
    .addOption(new Option('--path-length <number>', 'how many CAs may be below it').choices(['1', '2']).default('2'))
    .addOption(new Option('--lifetime <duration>', 'how long it is good for').default('3653d'))
  loads(cli, root, async () => (await import('./ca-ceremony.ts')).caRoot)

  const sign = tokenOptions(
    verb(ca, 'sign', 'Sign a request of a plane on the machine with the root key; needs no plane', [
      ['muster ca sign --root-key root.key --root-cert root.crt --request intermediate.csr > intermediate.pem', ''],
      [
        'muster ca sign --root-key pkcs11:token=vault;object=root --root-cert root.crt --request plane.csr > plane.pem',
        'key in a token',
      ],
    ]),
  )
    .requiredOption(
      '--root-key <key>',
      'private key of the root: a file (PEM), pkcs11:token=LABEL;object=LABEL or transit:key=NAME',
    )
    .requiredOption('--root-cert <file>', 'certificate of the root (PEM)')
    .requiredOption('--request <file>', 'what ca request or ca init has made (- for standard input)')
    .addOption(new Option('--lifetime <duration>', 'how long the intermediate is good for').default('1826d'))
  loads(cli, sign, async () => (await import('./ca-ceremony.ts')).caSign)

  const replaceLost = planeOptions(
    verb(
      ca,
      'replace-lost <key...>',
      'Make keys anew that are gone for good: issuing, recovery, statement, bearer, journal',
      [
        ['muster ca replace-lost issuing statement --data /srv/muster', 'what that would cost; nothing is done'],
        [
          'muster ca replace-lost recovery --data /srv/muster --reason "disk lost, no backup"',
          'on the host of the stopped plane, when no backup has it',
        ],
      ],
    ),
  )
  // What else a plane is set up with is taken and makes no difference to most: it would only hide what does.
  for (const option of replaceLost.options) option.hideHelp(!['--store', '--seal-key'].includes(option.long ?? ''))
  replaceLost
    .option('--reason <text>', 'do it; the journal keeps why. Without it, what would be done is only shown')
    .addHelpText(
      'after',
      () => `\nWhat it costs:\n${replacementCosts.map(([key, cost]) => `  ${key.padEnd(9)}  ${cost}`).join('\n')}`,
    )
  loads(cli, replaceLost, async () => (await import('./ca-offline.ts')).caReplaceLost)

  const imported = planeOptions(
    verb(ca, 'import <file>', 'Import the output of ca sign into the plane', [
      ['muster ca import intermediate.pem', 'on the plane; before its first start, too'],
    ]),
  )
  // Where the plane runs, none of them makes a difference.
  for (const option of imported.options) option.hideHelp(!['--store', '--seal-key'].includes(option.long ?? ''))
  performs(cli, imported, caImport)
}

const caShow = async (cli: Cli, options: GlobalOptions): Promise<void> =>
  showCa(cli, options, await connect(cli, options).ask(caApi.show))

type RotateOptions = PlanOptions & { readonly compromised?: string; readonly reason?: string }

const caRotate = withPlan(
  'rotate-ca',
  ({ compromised, reason }: RotateOptions) => ({
    kind: 'rotate-ca' as const,
    ...(compromised === undefined ? {} : { compromised, reason: reason ?? usualReason }),
  }),
  async (cli: Cli, options: RotateOptions) => {
    if (options.compromised !== undefined) return withdraw(cli, options, options.compromised)
    showCa(cli, options, await connect(cli, options).ask(caApi.rotate))
  },
)

const usualReason = 'its key may be known to others'

const withdraw = async (cli: Cli, options: RotateOptions, issuer: string): Promise<void> => {
  const body = { issuer, reason: options.reason ?? usualReason }
  const plane = connect(cli, options)
  const done = await plane.ask(caApi.withdraw, { body })
  const print = printer(cli, options)
  print.answer(done, (paint) => [
    ...renderFacts([
      ['withdrawn', done.withdrawn.length === 0 ? `${issuer}, before now` : done.withdrawn],
      ['successors', done.successors.length === 0 ? 'none needed: others sign here' : done.successors],
      ['channels cut', `${done.channels_cut} here`],
    ]),
    '',
    ...caLines(done.ca, cli.clock.nowMs(), paint),
  ])
  print.note(
    'Its nodes recover automatically, a few dozen a second; which of them wait for an approval: muster alert list',
  )
}

const caImport = async (cli: Cli, options: GlobalOptions, file: string): Promise<void> => {
  const { where } = resolveConnection(options, cli.env)
  if (where.kind === 'socket' && pathExists(`${where.dataFolder}/${firstRequestFile}`))
    return (await import('./ca-ceremony.ts')).caImportFirst(cli, options, file)
  const certificate = await readText(cli, file, 16_384)
  const plane = connect(cli, options)
  showCa(cli, options, await plane.ask(caApi.importIssued, { body: { certificate } }))
}

const caRequest = async (cli: Cli, options: GlobalOptions & { readonly workers?: true }): Promise<void> => {
  const body = options.workers === true ? { workers: true } : {}
  const answer = await connect(cli, options).ask(caApi.request, { body })
  const print = printer(cli, options)
  print.answer(answer, () => pemLines(answer.csr))
  print.note('next: where the root key is: muster ca sign --root-key FILE --root-cert FILE --request FILE')
}

type BundleOptions = GlobalOptions & {
  readonly join?: boolean
  readonly programs?: boolean
  readonly statements?: boolean
}

const caBundle = async (cli: Cli, options: BundleOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(caApi.bundle)
  const print = printer(cli, options)
  if (options.programs === true) {
    const { programs = [] } = answer
    if (programs.length === 0) throw noProgramsYet()
    return print.answer({ roots: programs }, () => programs.flatMap(pemLines))
  }
  if (options.statements === true) {
    const { statement_keys: keys = [] } = answer
    if (keys.length === 0) throw usageFailure('The plane does not say its statement keys.', 'It needs a plane of 0.6')
    print.answer({ statement_keys: keys }, () => keys.flatMap(pemLines))
    // As `muster agent trust` prints them.
    const ids = keys.flatMap((pem) => allFromPem('PUBLIC KEY', pem) ?? []).map(keyId)
    return print.note(`key ids: ${ids.join(', ')}`)
  }
  print.answer(answer, () => (options.join === true ? [printable(answer.join)] : answer.roots.flatMap(pemLines)))
  print.note(`root fingerprint ${answer.root}`)
  const local = options.join === true ? localAddressIn(answer.join) : null
  if (local !== null) print.note(localWarning(local))
}

const showCa = (cli: Cli, options: GlobalOptions, ca: CaView): void =>
  printer(cli, options).answer(ca, (paint) => caLines(ca, cli.clock.nowMs(), paint))

const rootKeyText = ({ root_online: online, authorities }: CaView): string => {
  if (!online) return 'offline'
  switch (authorities.find(({ role, signing }) => role === 'root' && signing)?.custody) {
    case 'pkcs11':
      return 'in a token'
    case 'transit':
      return 'in Vault'
    default:
      return 'on this plane'
  }
}

const caLines = (ca: CaView, nowMs: number, paint: Paint): string[] => [
  ...renderFacts([
    ['domain', ca.domain],
    ['root', `${ca.root}, its key ${rootKeyText(ca)}`],
    [
      'sealing',
      ca.sealing_protected
        ? 'protected'
        : 'unprotected: the sealing key is stored next to the data, or other users can read it',
    ],
    ['server', `${ca.server_certificate.names.join(', ')}, ${until(ca.server_certificate.not_after, nowMs)}`],
    ...ca.warnings.map((warning) => ['warning', warning] as const),
  ]),
  '',
  ...renderHeadedTable(
    ['AUTHORITY', 'ROLE', 'KEY', 'SIGNS', 'VALID', 'SUBJECT'],
    ca.authorities.map((authority) => [
      authority.id,
      authority.role,
      authority.custody,
      signs(authority),
      until(authority.not_after, nowMs),
      authority.subject,
    ]),
    paint,
  ),
]

const signs = ({ signing, withdrawn_at: withdrawn }: CaView['authorities'][number]): Cell => {
  if (withdrawn !== undefined) return { text: 'withdrawn', colour: 'red' }
  return signing ? { text: 'yes', colour: 'green' } : 'no'
}

const until = (notAfter: string, nowMs: number): string => {
  const ms = parseIsoTime(notAfter)
  if (ms === null) return notAfter
  return ms > nowMs ? `for ${formatSpan(ms - nowMs)}` : `expired ${formatAgo(ms, nowMs)}`
}

/** What it costs to have a lost key made anew. Here, so that the help can be printed without loading a plane. */
export const costOfReplacing = {
  issuing: 'certificates in use stay valid; revocation lists of the lost CA can no longer be signed',
  recovery:
    'connected machines learn the new recovery root; one that is off meanwhile needs muster node repair-bundle or a new token',
  statement:
    'machines take the new key with their next renewal; one whose certificate ends before that needs muster node repair-bundle',
  bearer: 'bearer tokens that were handed out before no longer work; machines get new ones with their next renewal',
  journal:
    'heads that the lost key has signed are verified by its public half in keys/journal.KEY_ID.key, which has to be there; with PostgreSQL restart every plane, so that it signs with the new key',
} as const

const replacementCosts = Object.entries(costOfReplacing)
