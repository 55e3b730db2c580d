// The real things tests are run against. A test that needs one asks for it here, so that its absence is one line and
// never a mystery; in CI an absent peer is a failure.

import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { TestContext } from 'node:test'
import { openControlGroups } from '#platform/control-groups.ts'
import { placeOfBuilt } from './built-peer.ts'
import debianPackages from './debian-packages.json' with { type: 'json' }

/** Which Debian packages bring a peer. scripts/test.ts installs what is missing, where it may. */
export const packageOf: Readonly<Record<string, string>> = debianPackages

/**
 * Programs are found on the PATH; `step-ca` and `vault` are built from their sources (built-peer.ts); `faketime` is the library to preload; `root`, `tmpfs` and `netns` are permissions; `systemd` is
 * one that may run in namespaces; `limits` are control groups in which a helper may limit what it starts; `arm64` is the folder with the libraries of programs for ARM that qemu-aarch64 runs;
 * `softhsm` is the PKCS#11 module; `previous-release` is the commit that test/compat/previous names, in the history of the repository.
 */
export const peerNames = [
  'openssl',
  'strace',
  'faketime',
  'curl',
  'ip',
  'ps',
  'promtool',
  'systemd-analyze',
  'cloud-init',
  'unshare',
  'script',
  'haproxy',
  'nginx',
  'etcd',
  'etcdctl',
  'patroni',
  'postgres',
  'wg',
  'wireguard-go',
  'ping',
  'dbus-daemon',
  'dpkg-deb',
  'mmdebstrap',
  'lintian',
  'softhsm2-util',
  'pkcs11-tool',
  'softhsm',
  'root',
  'systemd',
  'limits',
  'tmpfs',
  'netns',
  'previous-release',
  'arm64',
  'step-ca',
  'vault',
] as const
export type PeerName = (typeof peerNames)[number]

/** Only tests of the long run ask for these. */
export const peersOfTheLongRun: ReadonlySet<PeerName> = new Set(['arm64', 'lintian', 'mmdebstrap'])

export type Peer = { readonly path: string } | { readonly missing: string }

export const peer = (name: PeerName): Peer => {
  switch (name) {
    case 'faketime':
      return found(fakeTimeLibraries(), 'libfaketime is not installed')
    case 'postgres':
      return found([...debianPostgres(), ...onPath('postgres')], 'PostgreSQL is not installed')
    case 'softhsm':
      return found(softHsmModules(), 'SoftHSM is not installed')
    case 'root':
      return process.getuid?.() === 0 ? { path: '/' } : { missing: 'not running as root' }
    case 'systemd':
      return systemd()
    case 'limits':
      return limits()
    case 'tmpfs':
      return tmpfs()
    case 'netns':
      return netns()
    case 'previous-release':
      return previousRelease()
    case 'arm64':
      return arm64()
    case 'step-ca':
    case 'vault':
      return found(
        [placeOfBuilt(name)],
        'path' in go() ? `${name} is not built: npm test does that` : `${name} is not built, which takes Go`,
      )
    case 'openssl':
    case 'strace':
    case 'curl':
    case 'ip':
    case 'ps':
    case 'promtool':
    case 'systemd-analyze':
    case 'cloud-init':
    case 'unshare':
    case 'script':
    case 'haproxy':
    case 'nginx':
    case 'etcd':
    case 'etcdctl':
    case 'patroni':
    case 'wg':
    case 'wireguard-go':
    case 'ping':
    case 'dbus-daemon':
    case 'dpkg-deb':
    case 'mmdebstrap':
    case 'lintian':
    case 'softhsm2-util':
    case 'pkcs11-tool':
      return found(onPath(name), `${name} is not installed`)
  }
}

/** The path of a peer, or null after the test has been skipped: `if (openssl === null) return`. */
export const withPeer = (t: Pick<TestContext, 'skip'>, name: PeerName): string | null => {
  const it = peer(name)
  if ('path' in it) return it.path
  if (process.env['CI'] === '1') throw new Error(`CI has to have every peer: ${it.missing}`)
  t.skip(it.missing)
  return null
}

/** For a suite that needs a peer: `describe(name, suiteWith(peer('vault')), ...)`. */
export const suiteWith = (it: Peer): { readonly skip: string | false } => {
  if ('path' in it) return { skip: false }
  if (process.env['CI'] === '1') throw new Error(`CI has to have every peer: ${it.missing}`)
  return { skip: it.missing }
}

/** What peers that Debian does not have are built with. */
export const go = (): Peer => found(onPath('go'), 'Go is not on the PATH')

const found = (candidates: readonly string[], missing: string): Peer => {
  const first = candidates.find((candidate) => fs.existsSync(candidate))
  return first === undefined ? { missing } : { path: first }
}

const onPath = (program: string): string[] =>
  [...(process.env['PATH'] ?? '').split(path.delimiter), '/usr/sbin', '/sbin']
    .filter((folder) => folder !== '' && !folder.endsWith(path.join('node_modules', '.bin')))
    .map((folder) => path.join(folder, program))

/** Debian keeps the server out of the PATH, a folder a release; the newest first. */
const debianPostgres = (): string[] => {
  const folder = '/usr/lib/postgresql'
  const releases = fs.existsSync(folder) ? fs.readdirSync(folder) : []
  return releases
    .toSorted((one, other) => Number(other) - Number(one))
    .map((release) => path.join(folder, release, 'bin', 'postgres'))
}

/** The variant for programs with threads; distributions disagree about the folder. */
const fakeTimeLibraries = (): string[] =>
  ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib'].map((folder) =>
    path.join(folder, 'faketime', 'libfaketimeMT.so.1'),
  )

/** The PKCS#11 module itself. */
const softHsmModules = (): string[] =>
  ['/usr/lib/softhsm', '/usr/lib64', '/usr/lib/x86_64-linux-gnu/softhsm', '/usr/lib/aarch64-linux-gnu/softhsm'].map(
    (folder) => path.join(folder, 'libsofthsm2.so'),
  )

/** Mounting takes root and the capability: a container may have the one without the other. */
const tmpfs = (): Peer => {
  if (process.platform !== 'linux') return { missing: 'tmpfs is a Linux filesystem' }
  if (!isAllowed(sysAdmin)) return { missing: 'not allowed to mount a tmpfs' }
  return found(onPath('mount'), 'mount is not installed')
}

/** Network namespaces with tunnels in them. */
const netns = (): Peer => {
  if (process.platform !== 'linux') return { missing: 'network namespaces are of Linux' }
  if (!isAllowed(sysAdmin) || !isAllowed(netAdmin)) return { missing: 'not allowed to make network namespaces' }
  return found(['/dev/net/tun'], 'there is no /dev/net/tun')
}

/** Debian's libraries for programs that are built for another architecture. */
const arm64 = (): Peer => {
  const folder = '/usr/aarch64-linux-gnu'
  const wanted = ['ld-linux-aarch64.so.1', 'libstdc++.so.6', 'libatomic.so.1'].map((name) => `${folder}/lib/${name}`)
  const qemu = found(onPath('qemu-aarch64'), 'qemu-aarch64 is not installed')
  if ('missing' in qemu) return qemu
  return wanted.every((file) => fs.existsSync(file))
    ? { path: folder }
    : { missing: `there is no ${wanted.join(', ')}` }
}

/** As the first process of namespaces, with a control group of its own. */
const systemd = (): Peer => {
  if (process.platform !== 'linux') return { missing: 'systemd is of Linux' }
  if (!isAllowed(sysAdmin)) return { missing: 'not allowed to make namespaces' }
  if (controlGroups() === null) return { missing: 'there are no control groups of version 2 to write to' }
  return found(['/lib/systemd/systemd'], 'systemd is not installed')
}

/** Containers without a control group of their own have none. */
const limits = (): Peer => {
  const group = openControlGroups()?.make(`muster-test-peer-${process.pid}`, { memoryBytes: 1 << 26, mostProcesses: 1 })
  const [entrance] = group?.entrances ?? []
  // It is empty, and gone before this returns.
  void group?.end()
  return entrance === undefined
    ? { missing: 'this machine has no control groups with limits that can be used' }
    : { path: path.dirname(path.dirname(entrance)) }
}

/** Where control groups of version 2 can be made; null: nowhere. */
export const controlGroups = (): string | null => {
  const mounts = fs.readFileSync('/proc/mounts', 'utf8').split('\n')
  const places = mounts.flatMap((line) => /^\S+ (\S+) cgroup2 (?:\S*,)?rw\b/.exec(line)?.[1] ?? [])
  return places.find((place) => isWritable(place)) ?? null
}

const isWritable = (place: string): boolean => {
  try {
    fs.accessSync(place, fs.constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** CAP_NET_ADMIN and CAP_SYS_ADMIN. */
const netAdmin = 12n
const sysAdmin = 21n

const isAllowed = (capability: bigint): boolean => {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${effective}`) & (1n << capability)) !== 0n
}

/** Absent in a shallow clone, and in an unpacked archive. */
const previousRelease = (): Peer => {
  const repository = path.resolve(import.meta.dirname, '..', '..')
  const lines = fs.readFileSync(path.join(repository, 'test/compat/previous'), 'utf8').trim().split('\n')
  const isHere = (commit: string | undefined): boolean =>
    spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: repository, stdio: 'ignore' }).status === 0
  const absent = lines.filter((line) => !isHere(line.split(' ')[1]))
  if (absent.length === 0) return { path: repository }
  return { missing: `not in the history here: the commit of ${absent.map((line) => line.split(' ')[0]).join(', ')}` }
}
