// `muster plane`: its options.

import { Option, type Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { collect, documented, loads } from '#cli/kit/verb.ts'

export const declarePlane = (plane: Command, cli: Cli): void => {
  planeOptions(
    documented(plane, [
      ['muster plane', 'on ./data, https://localhost:8443 for nodes, http://127.0.0.1:8440 for operators'],
      ['muster plane --data /srv/muster --node-listen 0.0.0.0:8443 --server-name muster.example.org', ''],
      [
        'muster plane --data ./second --node-listen 127.0.0.1:0 --recovery-listen 127.0.0.1:0 --operator-listen 127.0.0.1:0 --status-listen 127.0.0.1:0',
        'beside another one',
      ],
      [
        'MUSTER_STORE_FILE=/etc/muster/store muster plane --store postgres --replicas 4 --seal-key /etc/muster/seal.key',
        'four processes on one port set, over PostgreSQL',
      ],
    ]),
  )
  plane.option('--replicas <number>', 'number of processes on the same ports, with --store postgres (MUSTER_REPLICAS)')
  loads(cli, plane, async () => (await import('./plane-run.ts')).plane)
}

/** Shared with `ca init`, which makes what `plane` would. */
export const planeOptions = (command: Command): Command =>
  command
    .option(
      '--store <sqlite|postgres>',
      'where everything is kept; postgres is found by MUSTER_STORE_FILE (a file of mode 0600 that holds a postgres:// URL) or PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE, PGSSLROOTCERT (MUSTER_STORE)',
    )
    .option('--domain <name>', 'trust domain, at the first start only (MUSTER_DOMAIN)')
    .option('--node-listen <host:port>', 'where nodes connect (MUSTER_NODE_LISTEN)')
    .option(
      '--recovery-listen <host:port>',
      'where nodes recover; default port 8442 on the host of --node-listen (MUSTER_RECOVERY_LISTEN)',
    )
    .option('--operator-listen <host:port>', 'where operators connect (MUSTER_OPERATOR_LISTEN)')
    .option(
      '--status-listen <host:port|off>',
      'listener for OCSP and certificate revocation lists (MUSTER_STATUS_LISTEN)',
    )
    .option(
      '--status-url <url>',
      'public URL of that listener, written into new certificates (AIA, CDP) (MUSTER_STATUS_URL)',
    )
    .option('--operator-tls', 'speak TLS to operators; without it only loopback is allowed (MUSTER_OPERATOR_TLS=1)')
    .option(
      '--server-name <name>',
      'a name or address nodes call the plane by; may be repeated (MUSTER_SERVER_NAME)',
      collect,
    )
    .option(
      '--proxy-from <address|cidr>',
      'a load balancer that sends PROXY protocol v2; may be repeated (MUSTER_PROXY_FROM)',
      collect,
    )
    .option(
      '--connections-per-source <number>',
      'most connections of one address (IPv6: /64) without proof, on each listener (MUSTER_CONNECTIONS_PER_SOURCE)',
    )
    .option(
      '--tls-threads <number>',
      'threads that speak TLS with nodes; 0: the main one does; default 1 where there are processors (MUSTER_TLS_THREADS)',
    )
    .addOption(
      new Option('--issuer-key <kind>', 'where the issuing key is kept (MUSTER_ISSUER_KEY)').choices([
        'file',
        'memory',
      ]),
    )
    .option('--seal-key <file>', 'key that seals the keys on disk; keep it elsewhere (MUSTER_SEAL_KEY)')
    .option('--root-out <folder>', 'at the first start: put the root key there instead of on the plane')
    .addOption(
      new Option('--root-path-length <1|2>', 'at the first start: how deep the root allows').choices(['1', '2']),
    )
    .option('--root-lifetime <duration>', 'at the first start (default 3653d)')
    .option('--intermediate-lifetime <duration>', 'of CAs the plane makes (default 1826d)')
    .option('--server-lifetime <duration>', 'of its own certificate (default 90d)')
    .option(
      '--clock-tolerance <duration>',
      "with PostgreSQL: how far this machine's clock may be from the database's (default 30s, MUSTER_CLOCK_TOLERANCE)",
    )
    .option('--alert-webhook <url>', 'where alerts are delivered to, signed (MUSTER_ALERT_WEBHOOK)')
    .option('--alert-webhook-secret-file <file>', 'what deliveries are signed with (MUSTER_ALERT_WEBHOOK_SECRET_FILE)')
    .option(
      '--alert-webhook-network <cidr>',
      'a network the webhook may be in although it is not public; may be repeated (MUSTER_ALERT_WEBHOOK_NETWORK)',
      collect,
    )
    .option('--alert-webhook-ca <file>', "roots trusted besides the system's (MUSTER_ALERT_WEBHOOK_CA)")
    .option('--node-metrics', 'show metrics of single nodes at GET /metrics/nodes (MUSTER_NODE_METRICS=1)')
    .option('--log-level <level>', 'trace, debug, info, warn, error or silent (MUSTER_LOG_LEVEL)')
