// A machine with nothing of this one but its kernel and its installed programs: namespaces of its own, and a root of its own in memory
// with its own /etc, /var, /tmp and home. Asks for the peers `ip`, `netns` and `unshare` first.

import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { startChild } from './child.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import type { Machine } from './network-namespaces.ts'
import { tempFolder } from './temp-folder.ts'

export type SeparateHost = {
  readonly name: string
  /** Of root, empty. */
  readonly home: string
  /** To be put in front of a command that is to run there, in a folder of the host. */
  wrapper(folder: string): readonly string[]
  /** Commands there get this environment and nothing else. */
  readonly environment: Readonly<Record<string, string>>
  /** A command that has to succeed, in the home of root. */
  run(command: string): void
}

export type HostOptions = {
  readonly name: string
  /** What its /etc/hosts has beside itself. */
  readonly hosts: Readonly<Record<string, string>>
  /** What its firmware says of it. */
  readonly serial: string
  /** Folders of this machine that are there, too, at the same path; those of `writable` can be written. */
  readonly shown?: readonly string[]
  readonly writable?: readonly string[]
}

/** What belongs to installed programs and is not in /usr. */
const ofPrograms = ['alternatives', 'ld.so.cache', 'nginx', 'nsswitch.conf', 'ssl']

const users = ['root:x:0:0:root:/root:/bin/bash', 'www-data:x:33:33::/var/www:/bin/false', 'nobody:x:65534:65534::/:']
const groups = ['root:x:0:', 'www-data:x:33:', 'nogroup:x:65534:']

/** $1: an empty folder, $2: the name, $3: its /etc/hosts, $4: MAC address, $5: serial number; then `ro FOLDER` and `rw FOLDER`. */
const inside = `set -e
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs "$1"
cd "$1"
mkdir dev etc home mnt old proc root run srv sys tmp usr var var/lib var/lib/nginx var/log var/log/nginx var/tmp
chmod 1777 tmp var/tmp
mount --bind /usr usr
mount -o remount,bind,ro usr
for one in bin sbin lib lib32 lib64; do
  if [ -L "/$one" ]; then cp -a "/$one" .; elif [ -d "/$one" ]; then mkdir "$one"; mount --bind -o ro "/$one" "$one"; fi
done
for one in ${ofPrograms.join(' ')}; do [ ! -e "/etc/$one" ] || cp -a "/etc/$one" etc/; done
printf '%s\\n' ${users.map((line) => `'${line}'`).join(' ')} > etc/passwd
printf '%s\\n' ${groups.map((line) => `'${line}'`).join(' ')} > etc/group
printf '%s\\n' "$2" > etc/hostname
printf '%s\\n' "$3" > etc/hosts
for one in null zero full random urandom tty; do : > "dev/$one"; mount --bind "/dev/$one" "dev/$one"; done
ln -s /proc/self/fd dev/fd
mkdir -p sys/class/net/cable/device sys/class/dmi/id
printf '%s\\n' "$4" > sys/class/net/cable/address
printf '%s\\n' "$5" > sys/class/dmi/id/product_serial
root=$1
hostname "$2"
shift 5
while [ $# -gt 0 ]; do
  mkdir -p "$root$2"
  mount --bind "$2" "$root$2"
  [ "$1" = rw ] || mount -o remount,bind,ro "$root$2"
  shift 2
done
mount -t proc proc proc
pivot_root . old
umount -l /old
rmdir /old
echo ready
exec sleep infinity
`

/** Of a machine of network-namespaces.ts, whose card has this address. */
export const openSeparateHost = async (
  t: Scope,
  machine: Machine,
  { name, hosts, serial, shown = [], writable = [] }: HostOptions,
): Promise<SeparateHost> => {
  const known = ['127.0.0.1 localhost', '::1 localhost', `${machine.address} ${name}`]
  const lines = [...known, ...Object.entries(hosts).map(([host, address]) => `${address} ${host}`)]
  const mac = macOf(machine)
  const folders = [...shown.flatMap((folder) => ['ro', folder]), ...writable.flatMap((folder) => ['rw', folder])]
  const namespaces = ['unshare', '--mount', '--uts', '--ipc', '--pid', '--fork', '--kill-child']
  const child = startChild(
    t,
    'sh',
    ['-c', inside, 'sh', tempFolder(t), name, lines.join('\n'), mac, serial, ...folders],
    { wrapper: [...machine.wrapper, ...namespaces] },
  )
  // It takes no SIGTERM while it waits for its child, with which everything in the host ends.
  cleanup(t, async () => void (await child.kill9()))
  await eventually(`host ${name} to be there`, () => {
    if (!child.running()) throw new Error(child.stderr())
    return child.stdout().includes('ready')
  })
  const first = fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  const home = '/root'
  const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: home }
  // nsenter itself would look for the folder on this machine.
  const entering = ['nsenter', '--target', first, '--mount', '--uts', '--ipc', '--net', '--pid', 'env']
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

const macOf = ({ wrapper }: Machine): string => {
  const [program = '', ...args] = wrapper
  return execFileSync(program, [...args, 'cat', '/sys/class/net/cable/address'], { encoding: 'utf8' }).trim()
}
