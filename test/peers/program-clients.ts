// Programs on other nodes, as clients of nginx, PostgreSQL and etcd: each request is a process and a handshake of its own, with
// the options of docs/programs/.

import { execFile } from 'node:child_process'
import { documentedArguments } from './documented-block.ts'
import { hostName, type ServerHost, type ServerName } from './program-servers.ts'

/** Null: it succeeded; else how it failed. */
type Failed = string | null

export type Clients = {
  /** `folder`: of one generation of a client's output. */
  ask(server: ServerName, folder: string): Promise<Failed>
  /** As `ask`, and as soon refused as served: etcdctl tries for seconds, so that etcd is asked by curl. */
  knock(server: ServerName, folder: string): Promise<Failed>
}

type ClientPrograms = {
  readonly curl: string
  readonly psql: string
  readonly etcdctl: string
  /** The clock of curl and psql. */
  readonly clock: Readonly<Record<string, string>>
  /** etcdctl resolves names itself: a file that takes the place of /etc/hosts for it. */
  readonly hosts: string
}

const withinMs = 30_000

export const openClients = ({ curl, psql, etcdctl, clock, hosts }: ClientPrograms, host: ServerHost): Clients => {
  const run = (program: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Failed> =>
    new Promise((resolve) => {
      const options = { env: { PATH: process.env['PATH'] ?? '', ...env }, timeout: withinMs }
      execFile(program, args, options, (error, stdout, stderr) =>
        resolve(error === null ? null : `${error.code ?? error.signal}: ${stdout}${stderr}`.trim()),
      )
    })
  const files = (folder: string) => ({ '/srv/outputs/app': folder })
  const get = (port: number, where: string, folder: string, env: Readonly<Record<string, string>>): Promise<Failed> => {
    const here = { ...files(folder), 'https://web.example/': `https://${hostName}:${port}${where}` }
    const options = ['-sS', '--fail', '--resolve', `${hostName}:${port}:127.0.0.1`]
    return run(curl, [...options, ...documentedArguments('programs/NGINX.md', 'curl', here)], env)
  }
  const ask: Clients['ask'] = (server, folder) => {
    const port = host.ports[server]
    switch (server) {
      case 'nginx':
        return get(port, '/', folder, clock)
      case 'postgres': {
        const here = {
          ...files(folder),
          'host=db.example': `host=${hostName} hostaddr=127.0.0.1 port=${port}`,
          'dbname=app': `dbname=${host.database()}`,
        }
        const options = ['-X', '-q', '-A', '-t', '-c', 'SELECT 1']
        return run(psql, [...options, ...documentedArguments('programs/POSTGRESQL.md', 'psql', here)], clock)
      }
      case 'etcd': {
        const here = { ...files(folder), 'kv.example:2379': `${hostName}:${port}` }
        const withHosts = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
        const words = ['sh', '-c', withHosts, 'sh', hosts, etcdctl]
        return run('unshare', ['--mount', ...words, ...documentedArguments('programs/ETCD.md', 'etcdctl', here)], {})
      }
    }
  }
  const knock: Clients['knock'] = (server, folder) =>
    server === 'etcd' ? get(host.ports.etcd, '/health', folder, {}) : ask(server, folder)
  return { ask, knock }
}
