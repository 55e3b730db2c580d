// Behind the real HAProxy, set up as docs/PRODUCTION.md says: TCP passed on with PROXY protocol v2, the plane's health asked
// over the operator's TLS.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { startChild, type Child } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { journalEntries } from '../process/plane-records.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

/** Where callers find the balancer, and where it calls from. */
const front = '127.0.0.2'
const balancer = '127.0.0.9'

const configuration = (plane: Plane, roots: string): string => {
  const port = (url: string): string => new URL(url).port
  const operator = `check port ${port(plane.operatorUrl)} check-send-proxy check-ssl check-sni localhost`
  const trust = `verify required ca-file ${roots} verifyhost localhost`
  const door = (name: string, at: string): string => `
frontend ${name}
    bind ${front}:${at}
    default_backend ${name}
backend ${name}
    source ${balancer}
    option httpchk
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost
    http-check expect status 200
    server plane1 127.0.0.1:${at} send-proxy-v2 inter 500ms fall 2 rise 1 ${operator} ${trust}
`
  return `
global
    maxconn 256
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout check 5s
${door('nodes', port(plane.nodeUrl))}
${door('recovery', port(plane.recoveryUrl))}
`
}

const startHaproxy = async (t: TestContext, program: string, plane: Plane): Promise<Child> => {
  const folder = tempFolder(t)
  const roots = path.join(folder, 'roots.pem')
  fs.writeFileSync(roots, (await plane.target()).roots.join('\n'))
  const file = path.join(folder, 'haproxy.cfg')
  fs.writeFileSync(file, configuration(plane, roots))
  const checked = spawnSync(program, ['-c', '-f', file], { encoding: 'utf8' })
  assert.equal(checked.status, 0, checked.stderr + checked.stdout)
  return startChild(t, program, ['-db', '-f', file], {})
}

test('an agent enrolls through HAProxy and keeps its channel; the plane knows who called', async (t) => {
  const haproxy = withPeer(t, 'haproxy')
  const curl = withPeer(t, 'curl')
  if (haproxy === null || curl === null) return
  const args = ['--proxy-from', balancer, '--operator-tls', '--server-name', front, '--server-name', 'localhost']
  const plane = await startPlane(t, { args })
  const running = await startHaproxy(t, haproxy, plane)

  const agent = startAgent(t, { join: await plane.token('--node', 'gpu-001') })
  await eventually(
    'the agent to be connected',
    async () => {
      const { body } = await plane.api('GET', '/v1/nodes/gpu-001')
      return body.membership === 'active' && body.channel_open === true
    },
    { withinMs: 30_000, everyMs: 100 },
  ).catch((error: unknown) => assert.fail(`${String(error)}\n${running.stderr()}${running.stdout()}${agent.stderr()}`))
  const [enrolled] = await journalEntries(plane, { node: 'gpu-001', type: 'host.enrolled' })
  assert.equal(enrolled.source, '127.0.0.1')

  const roots = path.join(tempFolder(t), 'roots.pem')
  fs.writeFileSync(roots, (await plane.target()).roots.join('\n'))
  const asked = spawnSync(
    curl,
    [
      ...['--silent', '--show-error', '--interface', '127.0.0.5', '--cacert', roots, '--write-out', '%{http_code}'],
      ...['--output', path.join(path.dirname(roots), 'answer'), '--header', 'content-type: application/json'],
      ...['--data', JSON.stringify({ method: 'token', csr: 'none', enrollment_token: `enroll_${'A'.repeat(43)}` })],
      `${plane.nodeUrl}/v1/enroll`,
    ],
    { encoding: 'utf8', timeout: 30_000 },
  )
  assert.equal(asked.stdout, '403', asked.stderr)
  await eventually('the refusal to be journaled', async () =>
    (await journalEntries(plane)).find(({ source }) => source === '127.0.0.5'),
  )
  assert.ok(running.running(), running.stderr())

  // What its health check finds is what it goes by.
  await plane.stop()
  await eventually('HAProxy to notice', () => /Server nodes\/plane1 is DOWN/.test(running.stderr() + running.stdout()))
})
