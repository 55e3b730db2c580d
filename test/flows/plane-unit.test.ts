import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { credentialName } from '#plane/keys/sealing-key.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { withPeer } from '../peers/peer.ts'
import { tempFolder } from '../process/temp-folder.ts'

const folder = path.join(import.meta.dirname, '../../packaging/systemd')
const textOf = (name: string): string => fs.readFileSync(path.join(folder, name), 'utf8')
const unit = textOf('muster-plane.service')
const keyUnit = textOf('muster-plane-seal-key.service')
const setting = (name: string, text = unit): string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`${name}=`))
    .map((line) => line.slice(name.length + 1))

test('systemd does not start a plane again whose settings or data folder are wrong, and tries on through an outage', () => {
  const prevented: number[] = setting('RestartPreventExitStatus').flatMap((codes) => codes.split(' ').map(Number))
  assert.deepEqual(new Set(prevented), new Set([exitCodes.usage, exitCodes.misconfigured]))
  assert.deepEqual(setting('Restart'), ['always'])
  assert.deepEqual(setting('StartLimitIntervalSec'), ['0'])
})

test('the plane has a user without rights, and gets its sealing key as a credential that is not in its data folder', () => {
  assert.deepEqual(setting('User'), ['muster'])
  assert.deepEqual(setting('CapabilityBoundingSet'), [''])
  assert.deepEqual(setting('NoNewPrivileges'), ['yes'])
  const [credential = ''] = setting('LoadCredential')
  const [name, file = ''] = credential.split(':')
  assert.equal(name, credentialName)
  assert.ok(!file.startsWith(`/var/lib/${setting('StateDirectory')[0]}`), file)
  assert.match(textOf('muster-plane.sysusers'), /^u muster - "Muster plane" \/var\/lib\/muster -$/m)
})

test('a sealing key is made for a new plane only, and never in the place of another', () => {
  const [, file = ''] = (setting('LoadCredential')[0] ?? '').split(':')
  const traces = ['keys', 'plane.domain', 'muster.db'].map((name) => `!/var/lib/muster/${name}`)
  assert.deepEqual(setting('ConditionPathExists', keyUnit), [`!${file}`, ...traces])
  assert.deepEqual(setting('Before', keyUnit), ['muster-plane.service'])
  assert.match(setting('ExecStart', keyUnit)[0] ?? '', new RegExp(`mv ${file}.new ${file};`))
})

test('neither a package nor the first boot of an image starts a plane that is not set up', () => {
  assert.match(textOf('muster-plane.preset'), /^disable muster-plane\.service$/m)
})

test('systemd rates the exposure of both units as low, and finds nothing to complain about', (t) => {
  const analyze = withPeer(t, 'systemd-analyze')
  if (analyze === null) return
  const here = tempFolder(t)
  const files = Object.entries({ 'muster-plane': unit, 'muster-plane-seal-key': keyUnit }).map(([name, text]) => {
    const file = path.join(here, `${name}.service`)
    fs.writeFileSync(file, text.replaceAll('/usr/bin/muster', '/bin/true'))
    const rated = spawnSync(analyze, ['security', '--offline=true', '--no-pager', file], { encoding: 'utf8' })
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(rated.stdout)?.[1])
    assert.ok(exposure <= 1.5, `${name}: ${exposure}\n${rated.stderr}`)
    return file
  })
  const checked = spawnSync(analyze, ['verify', '--man=no', ...files], { encoding: 'utf8' })
  assert.deepEqual(
    checked.stderr.split('\n').filter((line) => line.includes('muster-plane')),
    [],
  )
  assert.equal(checked.status, 0, checked.stderr)
})
