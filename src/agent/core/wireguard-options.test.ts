import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isProblem, resolveSettings } from '#platform/given-settings.ts'
import { agentSettings, type AgentOptions } from './settings.ts'
import { wireguardOf } from './wireguard-options.ts'

const made = (options: AgentOptions, env: Readonly<Record<string, string>>): unknown => {
  const { values, problems } = resolveSettings(agentSettings, { options, env, file: null })
  if (problems.length > 0) return problems[0]
  const wireguard = wireguardOf(values)
  return isProblem(wireguard) ? wireguard.problem : wireguard
}

const part = (wireguard: string, ...wireguardEndpoint: string[]): unknown => made({ wireguard, wireguardEndpoint }, {})

test('an agent takes no part in the WireGuard network unless it is given an interface', () => {
  assert.equal(made({}, {}), null)
  assert.equal(made({}, { MUSTER_WIREGUARD: '', MUSTER_WIREGUARD_ENDPOINT: '' }), null)
  assert.deepEqual(made({}, { MUSTER_WIREGUARD: 'wg0', MUSTER_WIREGUARD_ENDPOINT: '192.0.2.1,2001:db8::1' }), {
    interface: 'wg0',
    endpoint: { ipv4: '192.0.2.1', ipv6: '2001:db8::1', port: 51_820 },
  })
})

test('others reach it at an address of each family, at one port', () => {
  const endpoint = (ipv4: string | null, ipv6: string | null, port: number): unknown => ({
    interface: 'wg0',
    endpoint: { ipv4, ipv6, port },
  })
  assert.deepEqual(part('wg0'), { interface: 'wg0', endpoint: null })
  assert.deepEqual(part('wg0', '192.0.2.1:7'), endpoint('192.0.2.1', null, 7))
  assert.deepEqual(part('wg0', '[2001:DB8::1]:7', '192.0.2.1:7'), endpoint('192.0.2.1', '2001:db8::1', 7))
  for (const wrong of [['host'], ['192.0.2.1:0'], ['192.0.2.1:1', '192.0.2.2:1'], ['192.0.2.1:1', '[::1]:2'], ['a\nb']])
    assert.match(String(part('wg0', ...wrong)), /--wireguard-endpoint takes/, wrong.join())
})

test('an address that no other machine could reach is refused before anything is sent', () => {
  for (const place of ['127.0.0.1', '0.0.0.0', '[::1]:7', 'fe80::1', '::ffff:192.0.2.1', '224.0.0.1'])
    assert.match(String(part('wg0', place)), /--wireguard-endpoint takes/, place)
})

test('what could be read as an option or is longer than the kernel takes is no interface', () => {
  for (const name of ['-f', 'wg 0', 'a'.repeat(16), '../wg0']) assert.match(String(part(name)), /--wireguard takes/)
})
