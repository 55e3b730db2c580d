import { Option, type Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { replacementCosts } from './replacement-costs.ts'
import { noun, performs, plans, verb } from '#cli/kit/verb.ts'
import { planeOptions } from '#cli/plane/plane-noun.ts'

export const declareCa = (program: Command, cli: Cli): void => {
  const ca = noun(program, 'ca', 'The certificate authority of the domain', [
    ['muster ca show', ''],
    ['muster ca bundle > roots.pem', 'what others verify our certificates against'],
  ])
  const verbs = () => import('./ca-verbs.ts')

  const init = planeOptions(
    verb(ca, 'init', 'Make the data folder, the root and the first keys, without starting a plane', [
      ['muster ca init', 'root key sealed in ./data'],
      ['muster ca init --root-out /media/usb', 'root key kept off the plane'],
    ]),
  )
  performs(cli, init, async () => (await import('./ca-init.ts')).caInit)

  const show = verb(ca, 'show', 'Authorities, who signs now, and until when', [['muster ca show', '']])
  performs(cli, show, async () => (await verbs()).caShow)

  const bundle = verb(ca, 'bundle', 'Print the root certificates (PEM)', [
    ['muster ca bundle > roots.pem', ''],
    ['muster ca bundle --join > /etc/muster/join', 'into the image of machines that join by their hardware'],
  ]).option('--join', 'print a join string without a secret instead, for machines that join by their hardware')
  performs(cli, bundle, async () => (await verbs()).caBundle)

  const crl = verb(
    ca,
    'crl',
    'Print the revocation list of an issuing CA (PEM), for those who verify our certificates',
    [
      ['muster ca crl --out /srv/www/muster.crl', 'in a timer; or let them fetch it: muster plane --status-listen'],
      ['muster ca crl --delta', 'what was revoked since the full list before last'],
    ],
  )
    .option('--issuer <authority>', 'an AUTHORITY of muster ca show; without it whichever signs now')
    .option('--delta', 'a delta instead of the full list')
    .option('--out <file>', 'write it there instead, in one step')
  performs(cli, crl, async () => (await import('./ca-crl.ts')).caCrl)

  const status = verb(ca, 'status <serial>', 'Whether a certificate still holds, and since when not', [
    ['muster ca status 5f:0a:91:c2', 'as openssl x509 -serial prints it, colons or not'],
  ])
  performs(cli, status, async () => (await import('./ca-status.ts')).caStatus)

  const rotate = verb(ca, 'rotate', 'Replace the issuing key; certificates in use stay valid', [
    ['muster ca rotate', ''],
    ['muster ca rotate --compromised 3f9a... --plan', 'who would lose what, and could not come back by itself'],
    ['muster ca rotate --compromised 3f9a... --reason "its backup was stolen"', 'an AUTHORITY of muster ca show'],
  ])
    .option(
      '--compromised <authority>',
      'somebody else may have its key: drop it, take nothing it has signed, and let its nodes recover',
    )
    .option('--reason <text>', 'with --compromised: why; goes into the journal and the alert')
  plans(rotate)
  performs(cli, rotate, async () => (await verbs()).caRotate)

  const request = verb(ca, 'request', 'Print a request for a new intermediate, to carry to an offline root', [
    ['muster ca request > intermediate.csr', 'on the plane'],
  ])
  performs(cli, request, async () => (await verbs()).caRequest)

  const sign = verb(ca, 'sign', 'Sign such a request where the root key is; talks to no plane', [
    ['muster ca sign --root-key root.key --root-cert root.crt --request intermediate.csr > intermediate.pem', ''],
  ])
    .requiredOption('--root-key <file>', 'private key of the root (PEM)')
    .requiredOption('--root-cert <file>', 'certificate of the root (PEM)')
    .requiredOption('--request <file>', 'what ca request printed (- for standard input)')
    .addOption(new Option('--lifetime <duration>', 'how long the intermediate is good for').default('1826d'))
  performs(cli, sign, async () => (await import('./ca-sign.ts')).caSign)

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
  performs(cli, replaceLost, async () => (await import('./ca-replace-lost.ts')).caReplaceLost)

  const imported = verb(ca, 'import <file>', 'Hand what ca sign printed to the plane', [
    ['muster ca import intermediate.pem', 'on the plane'],
  ])
  performs(cli, imported, async () => (await verbs()).caImport)
}
