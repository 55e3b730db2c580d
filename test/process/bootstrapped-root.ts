// Debian as mmdebstrap makes it, and machines that start from it: each has the files of that root with changes of its own in front of
// them, a systemd as first process, namespaces and a control group of its own. Nothing of this machine is seen there but its kernel.
// Asks for the peers `mmdebstrap`, `systemd`, `ip`, `netns` and `unshare` first.

import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { startChild } from './child.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import type { Machine } from './network-namespaces.ts'
import type { SeparateHost } from './separate-host.ts'
import { ownControlGroup, startedSystemd } from './small-systemd.ts'
import { tempFolder } from './temp-folder.ts'

/** What a server has besides the smallest Debian, and what the packages depend on, which have no network to fetch it from. */
const included = ['systemd', 'systemd-sysv', 'dbus', 'iproute2', 'libatomic1', 'libstdc++6']

/** Takes no part in what is tested, and a third of the time. */
const leftOut = ['/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*']

/** The release of this machine, from the mirrors that Debian has by default. */
export const bootstrapRoot = (t: Scope): string => {
  const folder = path.join(tempFolder(t), 'debian')
  const release = /^VERSION_CODENAME=(\w+)$/m.exec(fs.readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'stable'
  const options = [
    '--variant=minbase',
    `--include=${included.join(',')}`,
    '--aptopt=Acquire::Languages "none"',
    '--dpkgopt=force-unsafe-io',
    ...leftOut.map((place) => `--dpkgopt=path-exclude=${place}`),
  ]
  execFileSync('mmdebstrap', ['--quiet', ...options, release, folder], { stdio: 'pipe', maxBuffer: 2 ** 26 })
  return folder
}

export type RootOptions = {
  readonly name: string
  /** Of `bootstrapRoot`. It stays as it is. */
  readonly debian: string
  /** What its /etc/hosts has besides itself. */
  readonly hosts?: Readonly<Record<string, string>>
  /** Files of this machine that are in the home of root there. */
  readonly files?: readonly string[]
}

/** $1: the root, $2: changes, $3: work, $4: the folder to mount it at. The caller is in a mount namespace of its own. */
const mounted = `set -e
mount --make-rprivate /
mount -t overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" overlay "$4"
cd "$4"
mount -t proc proc proc
mount -t tmpfs -o mode=0755 tmpfs dev
for one in null zero full random urandom tty; do : > "dev/$one"; mount --bind "/dev/$one" "dev/$one"; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
`

const booted = `${mounted}
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
hostname "$5"
pivot_root . mnt
umount -l /mnt
# systemd leaves that to what starts it in a container, and hands credentials over by such mounts.
mount --make-rshared /
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=muster-test \\
  /lib/systemd/systemd --system --unit=multi-user.target --log-target=journal --show-status=0 --crash-action=poweroff
`

const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' }

/** Folders of a root with changes: what was written is below `changes`. */
const layers = (t: Scope, { name, debian, hosts = {}, files = [] }: RootOptions) => {
  const folder = tempFolder(t)
  const [changes, work, root] = ['changes', 'work', 'root'].map((one) => path.join(folder, one)) as [
    string,
    string,
    string,
  ]
  for (const one of [path.join(changes, 'etc'), path.join(changes, 'root'), work, root])
    fs.mkdirSync(one, { recursive: true })
  fs.chmodSync(path.join(changes, 'root'), 0o700)
  const etc = (file: string, lines: readonly string[]): void =>
    fs.writeFileSync(path.join(changes, 'etc', file), lines.join('\n') + '\n')
  etc('hostname', [name])
  etc('hosts', [
    '127.0.0.1 localhost',
    '::1 localhost',
    ...Object.entries(hosts).map(([host, address]) => `${address} ${host}`),
  ])
  etc('machine-id', [randomBytes(16).toString('hex')])
  for (const file of files) fs.copyFileSync(file, path.join(changes, 'root', path.basename(file)))
  return { debian, changes, work, root }
}

/** A machine that has started, in a network of network-namespaces.ts. */
export const bootHost = async (t: Scope, machine: Machine, options: RootOptions): Promise<SeparateHost> => {
  const { debian, changes, work, root } = layers(t, options)
  const group = ownControlGroup(t, path.basename(path.dirname(root)))
  // The group first: in another network namespace /sys is another one, in which it is not seen.
  const enter = `echo $$ > ${group}/cgroup.procs && exec ${machine.wrapper.join(' ')} unshare -C -m -i -u -p --fork --kill-child sh -c "$0" sh "$@"`
  const child = startChild(t, 'sh', ['-c', enter, booted, debian, changes, work, root, options.name], {})
  // It takes no SIGTERM while it waits for its child, with which everything in the host ends.
  cleanup(t, async () => void (await child.kill9()))
  const entering = [
    'nsenter',
    '--target',
    await startedSystemd(child),
    '--mount',
    '--uts',
    '--ipc',
    '--net',
    '--pid',
    '--cgroup',
    'env',
  ]
  const host = hostOf(options.name, entering)
  // Units of Debian that find no hardware here may fail.
  const hasStarted = (): true => {
    host.run('systemctl is-system-running | grep -qE "running|degraded"')
    return true
  }
  await eventually('the host to have started', hasStarted, { withinMs: 60_000 })
  return host
}

/** The same root without a systemd that runs, as image builds have it. */
export const openChroot = async (t: Scope, options: RootOptions): Promise<SeparateHost> => {
  const { debian, changes, work, root } = layers(t, options)
  const inside = `${mounted}\npivot_root . mnt\numount -l /mnt\necho ready\nexec sleep infinity\n`
  const child = startChild(t, 'sh', ['-c', inside, 'sh', debian, changes, work, root], {
    wrapper: ['unshare', '--mount', '--uts', '--ipc', '--net', '--pid', '--fork', '--kill-child'],
  })
  cleanup(t, async () => void (await child.kill9()))
  await eventually(`root ${options.name} to be there`, () => {
    if (!child.running()) throw new Error(child.stderr())
    return child.stdout().includes('ready')
  })
  const first = fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  return hostOf(options.name, ['nsenter', '--target', first, '--mount', '--uts', '--ipc', '--net', '--pid', 'env'])
}

const hostOf = (name: string, entering: readonly string[]): SeparateHost => {
  const home = '/root'
  const wrapper = (folder: string): readonly string[] => [...entering, `--chdir=${folder}`]
  const [program = '', ...args] = wrapper(home)
  return {
    name,
    home,
    wrapper,
    environment,
    run: (command) =>
      void execFileSync(program, [...args, 'bash', '-ec', command], { env: environment, stdio: 'pipe' }),
  }
}
