import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { agentExitCodes } from '#agent/outcome.ts'

const unit = fs.readFileSync(path.join(import.meta.dirname, '../../packaging/systemd/muster-agent.service'), 'utf8')
const setting = (name: string): string[] =>
  unit
    .split('\n')
    .filter((line) => line.startsWith(`${name}=`))
    .map((line) => line.slice(name.length + 1))

test('systemd does not start an agent again that was refused for good or is not set up', () => {
  const prevented: number[] = setting('RestartPreventExitStatus').flatMap((codes) => codes.split(' ').map(Number))
  const { refused, revoked, misconfigured, untrusted } = agentExitCodes
  assert.deepEqual(new Set(prevented), new Set([refused, revoked, misconfigured]))
  assert.ok(!prevented.includes(untrusted), 'clocks and routes get repaired')
  assert.deepEqual(setting('Restart'), ['always'])
  assert.deepEqual(setting('StartLimitIntervalSec'), ['0'])
})

test('the agent runs without rights; only what comes before it is run by root', () => {
  assert.deepEqual(setting('User'), ['muster-agent'])
  assert.deepEqual(setting('CapabilityBoundingSet'), [''])
  assert.deepEqual(setting('NoNewPrivileges'), ['yes'])
  assert.ok(setting('ExecStart').every((command) => command.startsWith('/')))
  assert.ok(setting('ExecStartPre').every((command) => /^-?\+\//.test(command)))
})

test('root writes nothing into a folder of the agent, where a link could lead it elsewhere', () => {
  const [hardware = '', join = ''] = setting('ExecStartPre')
  assert.match(hardware, / --out \/run\/[^/]+$/)
  assert.match(join, /setpriv --reuid=muster-agent .* "[^"]*> \/var\/lib\/muster-agent\/join"/)
  assert.deepEqual(setting('RuntimeDirectory'), [])
})

test('the unit carries no secret and needs none on its command line', () => {
  assert.doesNotMatch(unit, /enroll_|MUSTER_JOIN/)
})
