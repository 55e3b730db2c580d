// What happens in the agent's unit before and around the agent, under a systemd of the test's own: root hands over what only root may
// read, and no other user gets it. A shell stands in the place of the agent and says what it sees.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { eventually } from '../process/eventually.ts'
import { startSmallSystemd } from '../process/small-systemd.ts'
import { tempFolder } from '../process/temp-folder.ts'

const packaged = (name: string): string =>
  fs.readFileSync(path.join(import.meta.dirname, '../../packaging/systemd', name), 'utf8')

const hardware = '/run/muster-agent-hardware'

const look = [
  'id -un',
  `grep -c cpu_cores ${hardware}/hardware.json`,
  `touch ${hardware}/other 2>/dev/null || echo cannot write there`,
  'cat /var/lib/muster-agent/join',
  'touch /run/wireguard/muster0.sock && echo a socket of its own',
].join('; ')

/** `daemon` stands for the user of the agent, and /mnt/host for /etc/muster; journals and targets are not there. */
const here = (text: string): string =>
  text
    .split('\n')
    .filter((line) => !/^(Log|Restart|StartLimit|After|Wants)/.test(line))
    .join('\n')
    .replace('[Unit]', '[Unit]\nDefaultDependencies=no')
    .replaceAll('/usr/bin/muster', '/mnt/muster/muster')
    .replaceAll('/etc/muster/', '/mnt/host/')
    .replaceAll(/(User=|Group=|--reuid=|--regid=|-g )muster-agent/g, '$1daemon')
    .replace('Type=exec', 'Type=exec\nStandardOutput=append:/run/seen.log')
    .replace(/^ExecStart=.*$/m, `ExecStart=/bin/sh -c '${look}; echo end'`)

test('the agent alone is given serial numbers and join string, and the sockets of its WireGuard are its own', async (t) => {
  if (withPeer(t, 'systemd') === null || withPeer(t, 'dbus-daemon') === null) return
  const host = tempFolder(t)
  fs.writeFileSync(path.join(host, 'join'), 'a join string\n', { mode: 0o600 })
  const { root } = await startSmallSystemd(t, {
    host,
    start: ['muster-agent.service'],
    units: {
      'muster-agent.service': here(packaged('muster-agent.service')),
      'muster-agent.service.d/wireguard.conf': packaged('muster-agent-wireguard.conf'),
    },
  })
  const seen = await eventually(
    'the agent to have looked',
    () => {
      const text = fs.readFileSync(`${root}/run/seen.log`, 'utf8')
      return text.endsWith('end\n') ? text : null
    },
    { withinMs: 60_000 },
  )
  const expected = ['daemon', '1', 'cannot write there', 'a join string', 'a socket of its own', 'end']
  assert.deepEqual(seen.trim().split('\n').slice(-expected.length), expected)
  const folder = fs.statSync(`${root}${hardware}`)
  assert.deepEqual([folder.uid, folder.gid, folder.mode & 0o777], [0, 1, 0o750])
  assert.ok(!fs.existsSync(`${root}/mnt/host/join`), 'the join string has moved')
  const sockets = `${root}/run/wireguard`
  assert.deepEqual([fs.statSync(sockets).uid, fs.readdirSync(sockets)], [0, []])
})
