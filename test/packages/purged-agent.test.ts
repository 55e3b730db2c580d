// What a purge of the package does to units that agent and helper have started: the script of the package, under a systemd of the test's own.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { prefixOf } from '#agent/fleet/systemd-runner.ts'
import { unitMark } from '#agent/helper/run-listed.ts'
import { withPeer } from '../peers/peer.ts'
import { repository } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { startSmallSystemd } from '../process/small-systemd.ts'
import { tempFolder } from '../process/temp-folder.ts'

/** As those two name them. */
const unitsOf = (stateFolder: string, agentToml: string): string[] => [
  `${prefixOf(stateFolder)}web.service`,
  ...['helper', 'once', 'task'].map((kind) => `muster-${kind}-${unitMark(agentToml)}-web.service`),
]

const running = '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/sleep infinity\n'

test('a purge stops what the agent and the helper of the package have started, and a removal does not', async (t) => {
  if (withPeer(t, 'systemd') === null || withPeer(t, 'dbus-daemon') === null) return
  const host = tempFolder(t)
  fs.copyFileSync(path.join(repository, 'packaging/debian/muster-agent/postrm'), path.join(host, 'postrm'))
  const own = unitsOf('/var/lib/muster-agent', '/etc/muster/agent.toml')
  const others = [...unitsOf('/var/lib/other-agent', '/etc/other/agent.toml'), 'muster-plane.service']
  const look = `systemctl is-active ${[...own, ...others].join(' ')} >> /run/seen.log`
  const removed = [
    '[Unit]\nDefaultDependencies=no',
    `After=${[...own, ...others].join(' ')}`,
    '[Service]\nType=oneshot',
    ...['remove', 'purge'].map(
      (step) => `ExecStart=/bin/sh -c '/bin/sh /mnt/host/postrm ${step}; ${look}; echo ${step} >> /run/seen.log'`,
    ),
    '',
  ].join('\n')
  const { root } = await startSmallSystemd(t, {
    host,
    start: [...own, ...others, 'removed.service'],
    units: { ...Object.fromEntries([...own, ...others].map((unit) => [unit, running])), 'removed.service': removed },
  })
  const seen = await eventually(
    'the package to be purged',
    () => {
      const text = fs.readFileSync(`${root}/run/seen.log`, 'utf8')
      return text.endsWith('purge\n') ? text : null
    },
    { withinMs: 60_000 },
  )
  const states = (list: readonly string[], state: string): string[] => list.map(() => state)
  assert.deepEqual(seen.trim().split('\n'), [
    ...states([...own, ...others], 'active'),
    'remove',
    ...states(own, 'inactive'),
    ...states(others, 'active'),
    'purge',
  ])
})
