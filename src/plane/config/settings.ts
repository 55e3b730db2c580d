// Every setting of `muster plane`: what it takes, what it means and when to change it. docs/SETTINGS.md is made from this.

import type { Network } from '#platform/ip-address.ts'
import { isIP } from '#platform/resolve-name.ts'
import { logSettings } from '#platform/log-settings.ts'
import {
  choiceSetting,
  listSetting,
  numberSetting,
  pathSetting,
  switchSetting,
  textSetting,
  Wrong,
} from '#platform/setting.ts'
import { parseDuration } from '#wire/core/duration.ts'
import { domainNameShape } from '#wire/core/join-string.ts'
import { keySettings } from './key-settings.ts'
import { balancerNetwork } from './proxy-from.ts'

export type ListenAddress = { readonly host: string; readonly port: number }

export const usualPlaneFile = '/etc/muster/plane.toml'

const stores = ['sqlite', 'postgres'] as const

/** What was given instead is never repeated: it is an address with a password more often than not. */
const noAddress =
  'takes sqlite or postgres and nothing else. Every user of this machine could read an address with a password on a command line: put postgres://USER:PASSWORD@HOST:PORT/DATABASE into a file of mode 0600 and name that file (--store-file, MUSTER_STORE_FILE), or use PGHOST and PGPASSFILE. A password that was given here is to be changed'

const matching =
  (shape: RegExp) =>
  (text: string): string | null =>
    shape.test(text) ? text : null

const address = (text: string): ListenAddress | null => {
  const [, host, port] = /^(\[[0-9a-fA-F:]+\]|[^:[\]]+):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || port === undefined || Number(port) > 65_535) return null
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

const duration = (text: string): number | null => {
  const ms = parseDuration(text)
  return ms === null || ms < 1000 ? null : ms
}

const aDuration = 'a duration of at least 1s, such as 90d'

const serverName = (text: string): string | null =>
  isIP(text) || domainNameShape.test(text.replace(/^\*\./, '')) ? text : null

const balancer = (text: string): Network | Wrong => {
  const network = balancerNetwork(text)
  return typeof network === 'string' ? new Wrong(network) : network
}

/** It goes into certificates, of which it must not be a large part. */
const longestStatusUrl = 128

const plainUrl = (text: string): string | null => {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (!isPlain || !['http:', 'https:'].includes(url.protocol) || text.length > longestStatusUrl) return null
  return url.href.replace(/\/+$/, '')
}

const listens = { value: 'host:port', takes: 'HOST:PORT, e.g. 0.0.0.0:8443 or [::]:8443' } as const

export const planeSettings = {
  data: pathSetting('./data', {
    value: 'folder',
    variable: 'MUSTER_DATA',
    emptyIsNone: true,
    isGlobal: true,
    meaning: 'Data folder: the embedded database, sealed keys, the socket for operators',
    change: 'Always in production: a folder of the user that runs the plane, on a disk that is backed up.',
  }),
  store: textSetting((text) => stores.find((one) => one === text) ?? new Wrong(noAddress), 'sqlite', {
    value: 'sqlite|postgres',
    variable: 'MUSTER_STORE',
    isPrivate: true,
    takes: 'sqlite or postgres',
    meaning:
      'Where everything is kept; postgres is found by --store-file or by PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE, PGSSLROOTCERT',
    change: 'To `postgres` for more than one replica, or where a database is run already.',
  }),
  storeFile: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_STORE_FILE',
    meaning: 'File of mode 0600 with the one line postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    unset: 'PGHOST and the other variables of PostgreSQL',
    change: 'With `store = "postgres"`. The address holds a password, so it is never itself an option or in this file.',
  }),
  replicas: numberSetting({ least: 1, most: 64 }, '1', {
    variable: 'MUSTER_REPLICAS',
    meaning: 'Number of processes on the same ports, with --store postgres',
    change: 'To about the number of processors, where one process is busy. Replicas on several machines need 1 here.',
  }),
  domain: textSetting(matching(domainNameShape), 'muster.local', {
    value: 'name',
    variable: 'MUSTER_DOMAIN',
    takes: 'a DNS name',
    meaning: 'Trust domain, at the first start only',
    change: 'Before the first start: the name is in every certificate and never changes.',
  }),
  nodeListen: textSetting(address, '127.0.0.1:8443', {
    ...listens,
    variable: 'MUSTER_NODE_LISTEN',
    meaning: 'Address on which nodes connect',
    change: 'To `0.0.0.0:8443` or an address of this machine as soon as other machines are to join.',
  }),
  recoveryListen: textSetting(address, null, {
    ...listens,
    variable: 'MUSTER_RECOVERY_LISTEN',
    meaning: 'Address on which nodes recover whose certificate no longer works',
    unset: 'port 8442 on the host of --node-listen',
    change: 'Where the port is taken, or a firewall wants another.',
  }),
  operatorListen: textSetting(address, '127.0.0.1:8440', {
    ...listens,
    variable: 'MUSTER_OPERATOR_LISTEN',
    meaning: 'Address of the API for operators, and of /metrics',
    change: 'To reach it from other machines, together with `operator_tls`.',
  }),
  statusListen: textSetting((text) => (text === 'off' ? 'off' : address(text)), '127.0.0.1:8446', {
    value: 'host:port|off',
    takes: `${listens.takes}; or off`,
    variable: 'MUSTER_STATUS_LISTEN',
    meaning: 'Address of the listener for OCSP and certificate revocation lists',
    change: 'To a public address where others verify certificates of this domain; `off` where none do.',
  }),
  statusUrl: textSetting(plainUrl, null, {
    value: 'url',
    variable: 'MUSTER_STATUS_URL',
    isPrivate: true,
    takes: `a URL such as http://status.example.org, without user, query and fragment, of at most ${longestStatusUrl} characters`,
    meaning: 'Public URL of that listener, written into new certificates (AIA, CDP)',
    unset: 'certificates name none',
    change: 'Where others verify certificates of this domain. Only certificates issued from then on carry it.',
  }),
  operatorTls: switchSetting({
    variable: 'MUSTER_OPERATOR_TLS',
    meaning: 'TLS on the listener for operators; without it only a loopback address is allowed',
    change: 'Where operators connect from other machines.',
  }),
  serverName: listSetting(serverName, 'localhost,127.0.0.1,::1', {
    value: 'name',
    variable: 'MUSTER_SERVER_NAME',
    takes: 'DNS names and addresses',
    meaning: 'A name or address of the plane, in its certificates; may be repeated. Nodes are sent to the first',
    change:
      'Before the first node of another machine joins: names that those machines resolve. A name that is taken away stays in the certificates until no node needs it (`muster domain names list`).',
  }),
  proxyFrom: listSetting(balancer, null, {
    value: 'address|cidr',
    variable: 'MUSTER_PROXY_FROM',
    takes: 'addresses, or networks such as 10.1.2.0/24',
    meaning: 'A load balancer that sends PROXY protocol v2; may be repeated',
    unset: 'none',
    change: 'Behind a load balancer, which then has to send that header on every connection.',
  }),
  connectionsPerSource: numberSetting({ least: 1, most: 9_999_999 }, null, {
    variable: 'MUSTER_CONNECTIONS_PER_SOURCE',
    meaning: 'Most connections of one address (IPv6: /64) without proof, on each listener',
    unset: 'its share of what is free',
    change:
      'To bound one address more tightly. It raises nothing: where many machines share an address (NAT), raise the limit of open files (`LimitNOFILE=`), of which one address gets half at most.',
  }),
  tlsThreads: numberSetting({ least: 0, most: 16 }, null, {
    variable: 'MUSTER_TLS_THREADS',
    meaning: 'Threads that speak TLS with nodes; 0: the main thread does',
    unset: '1 with two processors or more, and 0 in replicas of --replicas',
    change: 'To 0 to save about 14 MiB; more than 1 helps only where many nodes join at once.',
  }),
  agents: pathSetting(null, {
    value: 'folder',
    variable: 'MUSTER_AGENTS',
    meaning: 'Folder with the agents that machines may fetch: muster-linux-x64.gz, muster-linux-arm64.gz',
    unset:
      'the first that is there of `agents` in the data folder, `agents` beside the executable and /usr/share/muster/agents',
    change: 'Where they are kept elsewhere. `muster domain agents` says what is handed out.',
  }),
  taskFiles: pathSetting(null, {
    value: 'folder',
    variable: 'MUSTER_TASK_FILES',
    emptyIsNone: true,
    meaning: 'Folder with the files that tasks of the type fetch-file bring to nodes',
    unset: 'there are none',
    change: 'To use fetch-file. A node gets a file only while a task of its own asks for it.',
  }),
  issuerKey: choiceSetting(['file', 'memory'], 'file', {
    value: 'kind',
    variable: 'MUSTER_ISSUER_KEY',
    meaning: 'Where the issuing key is kept',
    change:
      'To `memory` for a key that is made at every start and never written; it needs a root with a path length of 2.',
  }),
  sealKey: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_SEAL_KEY',
    meaning: 'Key that seals the keys on disk: 64 hexadecimal digits, mode 0600 or 0640',
    unset: 'the systemd credential muster-seal-key, else seal.key in the data folder',
    change: 'In production: a file that is not in the data folder. A key beside the data it seals protects nothing.',
  }),
  ...keySettings,
  rootCertificate: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_ROOT_CERTIFICATE',
    meaning: 'At the first start: the certificate (PEM) of a root whose key is on another machine, and stays there',
    unset: 'a root is made',
    change: 'Before the first start, where no plane is ever to have the key of the root (`muster ca root`).',
  }),
  rootOut: pathSetting(null, {
    value: 'folder',
    variable: 'MUSTER_ROOT_OUT',
    meaning: 'At the first start: put the root key there instead of on the plane',
    unset: 'the root key is sealed in the data folder',
    change: 'For an offline root. The folder should be on a medium that is removed afterwards.',
  }),
  rootPathLength: numberSetting({ least: 1, most: 2 }, '2', {
    variable: 'MUSTER_ROOT_PATH_LENGTH',
    meaning: 'At the first start: how many CAs may be below the root',
    change: 'To 1 where a policy demands it; `issuer_key = "memory"` then cannot be used.',
  }),
  rootLifetime: textSetting(duration, '3653d', {
    value: 'duration',
    variable: 'MUSTER_ROOT_LIFETIME',
    takes: aDuration,
    meaning: 'At the first start: lifetime of the root',
    change: 'Before the first start, where a policy demands it.',
  }),
  intermediateLifetime: textSetting(duration, '1826d', {
    value: 'duration',
    variable: 'MUSTER_INTERMEDIATE_LIFETIME',
    takes: aDuration,
    meaning: 'Lifetime of the CAs that the plane makes',
    change: 'Where a policy demands it. It bounds the lifetime of certificates that a profile may ask for.',
  }),
  serverLifetime: textSetting(duration, '90d', {
    value: 'duration',
    variable: 'MUSTER_SERVER_LIFETIME',
    takes: aDuration,
    meaning: "Lifetime of the plane's own certificate, which it renews at half of it",
    change: 'Seldom.',
  }),
  clockTolerance: textSetting(duration, '30s', {
    value: 'duration',
    variable: 'MUSTER_CLOCK_TOLERANCE',
    takes: 'a duration of at least 1s, such as 30s',
    meaning: "With PostgreSQL: how far this machine's clock may be from the database's",
    change: 'Seldom: a replica beyond it serves nothing, so repair the clock instead.',
  }),
  alertWebhook: textSetting((text) => text, null, {
    value: 'url',
    variable: 'MUSTER_ALERT_WEBHOOK',
    isPrivate: true,
    takes: 'https://HOST/PATH, without a user, a password or a fragment',
    meaning: 'Where alerts are delivered to, signed',
    unset: 'nowhere',
    change: 'To have alerts in a chat, a pager or a queue. Needs `alert_webhook_secret_file`.',
  }),
  alertWebhookSecretFile: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_ALERT_WEBHOOK_SECRET_FILE',
    meaning: 'File of mode 0600 with the secret that deliveries are signed with',
    change: 'With `alert_webhook`.',
  }),
  alertWebhookNetwork: listSetting((text) => text, null, {
    value: 'cidr',
    variable: 'MUSTER_ALERT_WEBHOOK_NETWORK',
    takes: 'networks such as 10.1.2.0/24',
    meaning: 'A network the webhook may be in although it is not public; may be repeated',
    unset: 'public addresses only',
    change: 'Where the receiver is in a private network.',
  }),
  alertWebhookCa: pathSetting(null, {
    value: 'file',
    variable: 'MUSTER_ALERT_WEBHOOK_CA',
    meaning: "Roots (PEM) trusted for the webhook besides the system's",
    change: 'Where the receiver has a certificate of a private CA.',
  }),
  nodeMetrics: switchSetting({
    variable: 'MUSTER_NODE_METRICS',
    meaning: 'Metrics of single nodes at GET /metrics/nodes, in shards',
    change: 'Where a Prometheus should have the figures of each node and cannot scrape the hosts.',
  }),
  ...logSettings,
}
