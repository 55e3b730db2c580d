// L2, L10: a plane that ran with a clock days, months or years ahead, and was set right. Real processes under libfaketime;
// monotonic time is left alone, as it is when an operator sets a clock.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { describe, test } from 'node:test'
import { toPem } from '#pki/pem.ts'
import { withPeer } from '../peers/peer.ts'
import { activeNode } from '../process/active-node.ts'
import { eventually } from '../process/eventually.ts'
import { openFakeTime } from '../process/fake-time.ts'
import { rawNode } from '../process/raw-node.ts'
import { startAgent } from '../process/start-agent.ts'
import { startPlane, type Plane } from '../process/start-plane.ts'
import { onPostgres } from '../process/store-under-test.ts'
import { tamperWith } from '../process/tamper.ts'
import { tempFolder } from '../process/temp-folder.ts'

const hour = 3600_000
const day = 24 * hour
const long = process.env['MUSTER_LONG'] === '1'

const rootLifeMs = 3653 * day

const ran = (program: string, args: readonly string[]): string => {
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  return stdout + stderr
}

describe('a plane whose clock was ahead', { concurrency: true }, () => {
  test('L2: who was revoked is revoked for others after the clock was 3 days, 400 days or 20 years ahead for hours', async (t) => {
    const library = withPeer(t, 'faketime')
    const program = withPeer(t, 'openssl')
    if (library === null || program === null) return
    const openssl = (...args: string[]): string => ran(program, args)
    let plane: Plane = await startPlane(t)
    const node = await activeNode(plane, 'stolen')
    const good = await activeNode(plane, 'good')
    const { body } = await plane.api('POST', '/v1/nodes/stolen/revoke', { reason: 'stolen' })
    assert.equal(body.code, undefined, JSON.stringify(body))

    const all = [3 * day, 400 * day, 20 * 365 * day]
    for (const aheadMs of long ? all : onPostgres() ? all.slice(1) : [400 * day]) {
      await plane.stop()
      const time = openFakeTime(tempFolder(t), library, aheadMs)
      if (onPostgres() && aheadMs > rootLifeMs) {
        // No certificate can be made, and a replica has none from before: the start says why.
        await assert.rejects(plane.restart({ env: time.env }), /AUTHORITY_EXPIRED.*the root of this domain ended 20/)
        plane = await plane.restart({ env: {} })
        continue
      }
      const ahead = await plane.restart({ env: time.env })
      // The hourly upkeep runs when an hour has passed by either clock.
      if (!onPostgres()) time.advance(3 * hour)
      await new Promise((resolve) => setTimeout(resolve, 2500))
      await ahead.stop()
      // A jump of an hour would end the lease of a plane there: what the upkeep of 0.2.0 did after it is done by hand.
      if (onPostgres()) await tamperWith(ahead.data).sql('DELETE FROM denial')
      plane = await ahead.restart({ env: {} })
    }

    const folder = tempFolder(t)
    const file = (name: string, text: string): string => {
      fs.writeFileSync(path.join(folder, name), text)
      return path.join(folder, name)
    }
    const [leaf = '', ...between] =
      node.identity().chainPem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? []
    const files = {
      leaf: file('leaf.pem', leaf),
      issuer: file('issuer.pem', between[0] ?? ''),
      between: file('between.pem', between.join('')),
      roots: file('roots.pem', node.target.roots.join('')),
    }
    const trust = ['-CAfile', files.roots, '-no-CApath', '-no-CAstore']
    const ocsp = ['ocsp', '-url', `${plane.statusUrl}/ocsp`, '-issuer', files.issuer, '-cert', files.leaf]
    const said = openssl(...ocsp, ...trust, '-verify_other', files.between)
    assert.match(said, /Response verify OK/)
    assert.match(said, /leaf\.pem: revoked/)
    const serial = new X509Certificate(leaf).serialNumber
    assert.match((await plane.muster('ca', 'status', serial)).stdout, /status +revoked since/)

    const issuer = new X509Certificate(between[0] ?? '')
    const keyId = openssl('x509', '-noout', '-ext', 'subjectKeyIdentifier', '-in', files.issuer)
    const name = (/([0-9A-F]{2}(:[0-9A-F]{2}){19})/.exec(keyId)?.[1] ?? '').replaceAll(':', '').toLowerCase()
    const list = await fetch(`${plane.statusUrl}/crl/${name}.crl`)
    assert.equal(list.status, 200, issuer.subject)
    const crl = file('crl.pem', toPem('X509 CRL', new Uint8Array(await list.arrayBuffer())))
    const verify = ['verify', '-crl_check', '-CRLfile', crl, ...trust, '-untrusted', files.between]
    assert.match(openssl(...verify, files.leaf), /certificate revoked/)
    const [goodLeaf = ''] = good.identity().chainPem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g) ?? []
    assert.match(openssl(...verify, file('good.pem', goodLeaf)), /: OK/)
  })

  test('L10: what a plane issued 3 days ahead is refused when its clock is right, and an agent recovers without an operator', async (t) => {
    const library = withPeer(t, 'faketime')
    // Over PostgreSQL such a plane does not start (cluster/clock-off.test.ts).
    if (library === null || onPostgres()) return
    const first = await startPlane(t)
    await first.stop()
    const ahead = await first.restart({ env: openFakeTime(tempFolder(t), library, 3 * day).env })
    const raw = await activeNode(ahead, 'raw')
    const { body: token } = await ahead.api('POST', '/v1/tokens', { node: 'late' })
    const agent = startAgent(t, { join: await ahead.token('--node', 'gpu-001') })
    const record = async (plane: Plane) => (await plane.api('GET', '/v1/nodes/gpu-001')).body
    await eventually('the agent to be active', async () => (await record(ahead)).membership === 'active', {
      withinMs: 20_000,
    })
    await ahead.stop()

    const plane = await ahead.restart({ env: {} })
    const refused = await raw.confirm()
    assert.deepEqual([refused.status, refused.body.code], [403, 'CLIENT_CERT_DENIED'])
    assert.match(refused.body.detail ?? refused.body.message, /by a clock that was ahead/)
    assert.equal((await raw.renew()).reply.body.code, 'CLIENT_CERT_DENIED')
    const late = await rawNode(await plane.target()).enrollByToken(token.secret)
    assert.equal(late.body.code, 'TOKEN_INVALID')
    // The journal was written up to three days from now.
    assert.match((await plane.api('GET', '/readyz')).body.warnings.join('\n'), /clock: the journal was written up to/)
    await eventually(
      'the agent to be back, by a recovery',
      async () => {
        const { epoch, sessions } = await record(plane)
        return epoch === 2 && sessions.length > 0
      },
      { withinMs: 60_000 },
    )
    assert.ok(agent.running())
  })
})
