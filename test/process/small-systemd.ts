// A systemd of the test's own, as the first process of namespaces of its own: it knows no unit but those it is given, sees the file
// system of the machine read-only, and has a control group of its own. Asks for the peers `systemd` and `dbus-daemon` first.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { controlGroups } from '../peers/peer.ts'
import { repository, startChild, type Child } from './child.ts'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import { tempFolder } from './temp-folder.ts'

export type SmallSystemd = {
  /** Its file system, as this process reaches it. */
  readonly root: string
}

/** What `units` stand on, and a bus, without which nobody can wait for a unit. */
const ownUnits: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['sysinit', 'basic', 'sockets', 'shutdown', 'umount', 'exit'].map((name) => [
      `${name}.target`,
      '[Unit]\nDefaultDependencies=no\n',
    ]),
  ),
  'dbus.socket': '[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=/run/dbus/system_bus_socket\n',
  'dbus.service': [
    '[Unit]\nDefaultDependencies=no\nRequires=dbus.socket',
    '[Service]\nType=notify\nNotifyAccess=main',
    'ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation\n',
  ].join('\n'),
}

/** $1: what to copy to /mnt/host, $2: the units, $3: the repository, which is at /mnt/muster. */
const inside = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=0755 tmpfs /mnt
mkdir /mnt/muster
cp -a "$1" /mnt/host
chown -R 0:0 /mnt/host
mount --bind "$3" /mnt/muster
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/systemd
cp -r "$2" /run/systemd/system
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for place in / /var /dev/shm; do mount -o remount,bind,ro "$place" 2>/dev/null || true; done
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
mount -t tmpfs -o mode=0755 tmpfs /var/lib
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=muster-test SYSTEMD_UNIT_PATH=/run/systemd/system \\
  /lib/systemd/systemd --system --unit=start.target --log-target=null --show-status=0 --crash-action=poweroff
`

/** `host`: a folder that is copied to /mnt/host. `units`: by their file names; `start`: those that it starts with. */
export const startSmallSystemd = async (
  t: Scope,
  { host, units, start }: { host: string; units: Readonly<Record<string, string>>; start: readonly string[] },
): Promise<SmallSystemd> => {
  const folder = tempFolder(t)
  const target = `[Unit]\nDefaultDependencies=no\nWants=dbus.socket dbus.service ${start.join(' ')}\n`
  for (const [name, text] of Object.entries({ ...ownUnits, ...units, 'start.target': target })) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    fs.writeFileSync(path.join(folder, name), text)
  }
  const group = ownControlGroup(t, path.basename(folder))
  const enter = `echo $$ > ${group}/cgroup.procs && exec unshare -C -m -n -i -u -p --fork --kill-child sh -c "$0" sh "$@"`
  const child = startChild(t, 'sh', ['-c', enter, inside, host, folder, repository], {})
  // It takes no SIGTERM while it waits for its child.
  cleanup(t, async () => void (await child.kill9()))
  return { root: `/proc/${await startedSystemd(child)}/root` }
}

/** The pid of the systemd that a child starts as the first process of its namespaces. */
export const startedSystemd = (child: Child): Promise<string> =>
  eventually('systemd to be started', () => {
    if (!child.running()) throw new Error(child.stderr())
    const [pid] = fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')
    const isIt = pid !== undefined && pid !== '' && fs.readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('systemd')
    return isIt ? pid : null
  })

/** A control group for a systemd, which is gone after the test with all that systemd made in it. */
export const ownControlGroup = (t: Scope, name: string): string => {
  const group = path.join(controlGroups() ?? '', `muster-test-${process.pid}-${name}`)
  fs.mkdirSync(group)
  cleanup(t, () => eventually('the control group to be empty', () => removed(group)).then(() => {}))
  return group
}

/** With all that was made below it. */
const removed = (group: string): boolean => {
  for (const entry of fs.readdirSync(group, { withFileTypes: true })) {
    if (entry.isDirectory()) removed(path.join(group, entry.name))
  }
  fs.rmdirSync(group)
  return true
}
