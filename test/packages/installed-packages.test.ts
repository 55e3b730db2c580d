// The Debian packages in bootstrapped roots: docs/INSTALL.md followed on two hosts with a systemd of their own, installed in a chroot, upgraded
// from the releases before, removed and purged, and looked at by lintian. Minutes: only in the long run.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { knowsSchema } from '#plane/store/postgres/schema-gate.ts'
import { newestSchema } from '#plane/store/postgres/schema-since.ts'
import { buildDebs, packageVersion } from '../../scripts/build-deb.ts'
import { buildExecutable } from '../../scripts/build.ts'
import { releaseBefore, releaseNamed, sourcesOf, type NamedRelease } from '../compat/previous-release.ts'
import { peer, withPeer, type PeerName } from '../peers/peer.ts'
import { bootHost, bootstrapRoot, openChroot } from '../process/bootstrapped-root.ts'
import { repository } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { openNetworks } from '../process/network-namespaces.ts'
import type { SeparateHost } from '../process/separate-host.ts'
import { shared } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { readmeSteps } from '../transcripts/readme-steps.ts'
import { runReadme } from '../transcripts/run-readme.ts'

const needed: readonly PeerName[] = ['dpkg-deb', 'mmdebstrap', 'systemd', 'ip', 'netns', 'unshare', 'root']
const isLong = process.env['MUSTER_LONG'] === '1'
const mayRun = isLong && process.arch === 'x64' && needed.every((name) => 'path' in peer(name))

const hasAll = (t: TestContext): boolean => needed.every((name) => withPeer(t, name) !== null)

/** A plane of the second cannot read the store of this one. */
const upgradedFrom = [releaseBefore(), releaseNamed('0.6.0')]
const readsStore = ({ version }: NamedRelease): boolean => knowsSchema(version, newestSchema)

describe('packages', { skip: isLong ? false : 'only in the long run' }, () => {
  /** A root and the packages, once for all tests. */
  const made = shared(async (scope) => {
    if (!mayRun) return { debian: '', executable: '', packages: [] }
    const out = tempFolder(scope)
    const { file: executable } = await buildExecutable('x64', out)
    const packages = buildDebs({ arch: 'x64', executable, out, level: 1 }).map(({ file }) => file)
    return { debian: bootstrapRoot(scope), executable, packages }
  })
  test('docs/INSTALL.md leads from two bootstrapped roots to a second node that is active, and revoked', async (t) => {
    if (!hasAll(t)) return
    const page = 'docs/INSTALL.md'
    const steps = readmeSteps(fs.readFileSync(path.join(repository, page), 'utf8'), page)
    const networks = openNetworks(t)
    const open = async (name: string, address: string): Promise<SeparateHost> => {
      const { debian, packages: files } = made()
      return bootHost(t, networks.machine(address), { name, debian, files })
    }
    const plane = await open('plane', '192.0.2.10')
    const second = await open('gpu-002', '192.0.2.20')
    await runReadme(t, steps, {
      plane: { host: plane, folder: plane.home },
      'gpu-002': { host: second, folder: second.home },
    })
    second.run('[ ! -e /var/lib/muster-agent ] && [ ! -e /etc/muster ] && [ ! -e /usr/bin/muster ]')
  })

  test('in a chroot they are installed, removed and purged, and nothing is started', async (t) => {
    if (!hasAll(t)) return
    const { debian, packages: files } = made()
    const root = await openChroot(t, { name: 'image', debian, files })
    root.run('dpkg -i *.deb')
    root.run('test -L /etc/systemd/system/multi-user.target.wants/muster-agent.service')
    root.run('test ! -e /etc/systemd/system/multi-user.target.wants/muster-plane.service')
    root.run('getent passwd muster && getent passwd muster-agent')
    root.run('! ls /var/lib/muster /var/lib/muster-agent /etc/muster/seal.key 2>/dev/null')
    root.run(`muster --version | grep -F '${packageVersion()}'`)
    root.run('! readlink /proc/[0-9]*/exe | grep -x /usr/bin/muster')
    root.run('dpkg --remove muster-agent muster-plane muster')
    root.run('test -e /etc/muster/plane.toml')
    root.run('dpkg --purge muster-agent muster-plane muster')
    root.run('test ! -e /etc/muster && ! find /etc/systemd /usr/lib/systemd -name "*muster*" | grep .')
  })

  for (const release of upgradedFrom)
    test(`a plane and an agent of ${release.version} are upgraded, are downgraded only where the store can be read, and outlive a removal; a purge keeps the domain`, async (t) => {
      if (!hasAll(t)) return
      if (withPeer(t, 'previous-release') === null) return
      const files = [...made().packages, ...packagesOf(t, release, tempFolder(t))]
      const networks = openNetworks(t)
      const host = await bootHost(t, networks.machine('192.0.2.10'), { name: 'plane', debian: made().debian, files })
      const install = `dpkg -i *_${release.version}_*.deb`
      const newer = `dpkg -i *_${packageVersion()}_*.deb`

      host.run(install)
      host.run(`cat >> /etc/muster/plane.toml <<'END'\n${settings}\nEND\nsystemctl enable --now muster-plane`)
      await shows(host, 'muster token create --node gpu-001 > join && cat join', 'muster1,')
      host.run('install -m 0600 join /etc/muster/join && systemctl start muster-agent')
      await shows(host, showNode, connected)
      for (const unit of ['muster-plane', 'muster-agent']) assert.equal(versionRun(host, unit), release.version)
      const before = output(host, showNode)

      host.run(newer)
      await runs(host, packageVersion())
      await shows(host, showNode, connected)
      host.run('grep -q upgraded.example /etc/muster/plane.toml')
      assert.equal(epochOf(output(host, showNode)), epochOf(before), 'the agent went on with its identity')

      if (readsStore(release)) {
        host.run(install)
        await runs(host, release.version)
        await shows(host, showNode, connected)
        host.run(newer)
        await runs(host, packageVersion())
        await shows(host, showNode, connected)
      } else {
        const downgrade = `dpkg -i muster_${release.version}_*.deb muster-plane_${release.version}_*.deb`
        const refused = spawnSync('bash', ['-c', `${entered(host)} bash -c '${downgrade}'`], { encoding: 'utf8' })
        assert.notEqual(refused.status, 0)
        assert.match(refused.stderr, /cannot read the store of the plane in \/var\/lib\/muster/)
      }
      host.run(
        `dpkg-query -W -f '\${Package} \${Version} \${db:Status-Abbrev}\\n' 'muster*' | grep -c '${packageVersion()} ii' | grep -x 3`,
      )
      host.run('systemctl is-active muster-plane muster-agent')

      host.run('dpkg --remove muster-agent muster-plane')
      host.run('! systemctl is-active muster-plane muster-agent')
      host.run('test -e /var/lib/muster/muster.db && test -e /var/lib/muster-agent/identity.json')
      host.run(newer)
      await shows(host, showNode, connected)

      host.run('dpkg --purge muster-agent muster-plane | grep "rm -rf /var/lib/muster /etc/muster/seal.key"')
      host.run('test -e /var/lib/muster/muster.db && test -s /etc/muster/seal.key && test ! -e /var/lib/muster-agent')
      host.run('! ls /var/log/journal/*.muster-agent 2>/dev/null')
    })

  test('lintian finds no error that has no reason given', (t) => {
    if (!hasAll(t)) return
    const lintian = withPeer(t, 'lintian')
    if (lintian === null) return
    const found = spawnSync(lintian, ['--fail-on', 'error', '--no-cfg', '--allow-root', ...made().packages], {
      encoding: 'utf8',
    })
    assert.equal(found.status, 0, found.stdout + found.stderr)
    for (const line of found.stdout.split('\n')) assert.doesNotMatch(line, /^E: /)
  })
})

const settings = 'domain = "upgraded.example"\nserver_name = ["192.0.2.10"]\nnode_listen = "0.0.0.0:8443"'

const showNode = 'muster node show gpu-001 -o json'
const connected = '"channel_open": ?true'

/** Of the program that a unit runs, which may have been replaced on the disk since it started. */
const versionRun = (host: SeparateHost, unit: string): string =>
  output(host, `/proc/$(systemctl show --value --property=MainPID ${unit})/exe --version`)
    .trim()
    .replace(/^muster /, '')

const runs = async (host: SeparateHost, version: string): Promise<void> => {
  for (const unit of ['muster-plane', 'muster-agent'])
    await eventually(`${unit} to be of ${version}`, () => versionRun(host, unit) === version)
}

const entered = (host: SeparateHost): string => host.wrapper(host.home).join(' ')

const output = (host: SeparateHost, command: string): string => {
  const [program = '', ...args] = host.wrapper(host.home)
  return execFileSync(program, [...args, 'bash', '-ec', command], { env: host.environment, encoding: 'utf8' })
}

const shows = async (host: SeparateHost, command: string, wanted: string): Promise<void> => {
  const isShown = (): boolean => new RegExp(wanted, 's').test(output(host, `${command} 2>&1`))
  await eventually(`${command} to show ${wanted}`, isShown, { withinMs: 60_000 })
}

const epochOf = (node: string): unknown => (JSON.parse(node) as { readonly epoch?: unknown }).epoch

/** The packages of a release, which its own build makes from its sources. */
const packagesOf = (scope: Scope, release: NamedRelease, out: string): string[] => {
  const build = `
    const { buildExecutable } = await import('./scripts/build.ts')
    const { buildDebs } = await import('./scripts/build-deb.ts')
    const { file: executable } = await buildExecutable('x64', ${JSON.stringify(out)})
    buildDebs({ arch: 'x64', executable, out: ${JSON.stringify(out)}, level: 1 })`
  execFileSync(process.execPath, ['--input-type=module', '--eval', build], {
    cwd: sourcesOf(scope, release, []),
    stdio: 'pipe',
  })
  return fs
    .readdirSync(out)
    .filter((name) => name.endsWith('.deb'))
    .map((name) => path.join(out, name))
}
