import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asCalled, openHints } from './as-called.ts'

test('a hint is called as its reader calls us; a file of that name is left alone', () => {
  assert.equal(
    asCalled('See it: muster node show a (./muster, muster.db)', './muster'),
    'See it: ./muster node show a (./muster, muster.db)',
  )
})

test('the value of an option is not taken for the command', () => {
  const given = { plane: [['--data', 'd']] as const, state: null }
  assert.equal(
    asCalled('muster worker-issuer add ci --aud muster --sub deploy', './muster', given),
    './muster --data d worker-issuer add ci --aud muster --sub deploy',
  )
})

test('a hint names the plane that its command was given, before the noun', () => {
  const given = {
    plane: [
      ['--data', '/srv/my data'],
      ['--key-file', 'k'],
    ] as const,
    state: null,
  }
  const shown = (text: string) => asCalled(text, 'muster', given)
  assert.equal(
    shown('Why: muster node show a; then muster node release a'),
    "Why: muster --data '/srv/my data' --key-file k node show a; then muster --data '/srv/my data' --key-file k node release a",
  )
  assert.equal(shown('muster plane --server-name NAME'), "muster --data '/srv/my data' plane --server-name NAME")
  for (const text of [
    'muster plane --data /srv/other',
    'muster version',
    'on the machine: muster agent explain',
    'carry it to the other domain, there: muster peer-domain add FILE',
  ])
    assert.equal(shown(text), text)
})

test('a hint about the agent names its state folder, after the verb', () => {
  const shown = (text: string) => asCalled(text, './muster', { plane: [], state: './n1' })
  assert.equal(shown('See it: muster agent cert show web'), 'See it: ./muster agent cert show --state ./n1 web')
  assert.equal(
    shown('Start it: muster agent run; or muster agent renew --now'),
    'Start it: ./muster agent run --state ./n1; or ./muster agent renew --state ./n1 --now',
  )
  assert.equal(shown('muster agent explain --state FOLDER'), './muster agent explain --state FOLDER')
  assert.equal(shown('muster node show gpu-001'), './muster node show gpu-001')
})

test('a program for nodes says of commands that it does not have where they are run', () => {
  const { asCalled: hint } = openHints('muster', ['agent', 'version'])
  assert.equal(
    hint('See why: muster node show a; then muster token create --node a'),
    'See why (on the plane): muster node show a; then muster token create --node a',
  )
  assert.equal(hint('muster node enroll a'), 'on the plane: muster node enroll a')
  assert.equal(hint('Do it (muster node enroll a)'), 'Do it (on the plane: muster node enroll a)')
  assert.equal(hint('muster agent renew --now'), 'muster agent renew --now')
  assert.equal(hint('on the plane: muster node show a'), 'on the plane: muster node show a')
})
