import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultOfParameters, parseManifest, type OwnType } from './own-types.ts'
import { readRefusal, refusalMessage, refuseTask } from './task-verbs.ts'

const declared = (text: string): OwnType => {
  const manifest = parseManifest(text)
  return 'why' in manifest ? assert.fail(manifest.why) : manifest
}

test('a manifest names an executable, and is root’s and not repeatable where it says nothing', () => {
  assert.deepEqual(declared('executable = "/usr/bin/drain"\n'), {
    executable: '/usr/bin/drain',
    user: 'root',
    workingDirectory: '/',
    repeatable: false,
    withinMs: 600_000,
    memoryBytes: 512 * 1024 ** 2,
    parameters: new Map(),
  })
  for (const [text, why] of [
    ['', /executable: is missing/],
    ['executable = "drain"\n', /executable: takes a full path/],
    ['executable = "/drain"\nshell = true\n', /shell: is unknown here/],
    ['executable = "/drain"\n[parameters.a]\ntype = "float"\n', /parameters.a.type: takes string, strings/],
    ['executable = "/drain"\n[parameters."A b"]\ntype = "string"\n', /is not a name it takes/],
  ] as const) {
    const manifest = parseManifest(text)
    assert.ok('why' in manifest && why.test(manifest.why), JSON.stringify(manifest))
  }
})

test('parameters are those that the manifest declares, and within its bounds', () => {
  const { parameters } = declared(`executable = "/drain"
[parameters.queue]
type = "string"
required = true
least = 1
most = 3
[parameters.wait]
type = "integer"
most = 600
`)
  assert.equal(faultOfParameters(parameters, { queue: 'gpu', wait: 600 }), null)
  assert.equal(faultOfParameters(parameters, { queue: 'gpu' }), null)
  for (const wrong of [
    {},
    { queue: '' },
    { queue: 'batch' },
    { queue: 1 },
    { queue: null },
    { queue: 'gpu', wait: 601 },
    { queue: 'gpu', wait: -1 },
    { queue: 'gpu', wait: '1' },
    { queue: 'gpu', toString: 'x' },
  ])
    assert.notEqual(faultOfParameters(parameters, wrong), null, JSON.stringify(wrong))
})

test('a parameter that does not fit is refused with what it is and what the manifest declares', () => {
  const { parameters } = declared(`executable = "/drain"
[parameters.queue]
type = "string"
one_of = ["batch", "gpu"]
[parameters.wait]
type = "integer"
most = 600
[parameters.hosts]
type = "strings"
most = 8
[parameters.force]
type = "boolean"
`)
  for (const [given, why] of [
    [{ wait: '5' }, 'wait is a text; declared: an integer from 0 to 600 (--param wait:=0)'],
    [{ wait: 601 }, 'wait is a number; declared: an integer from 0 to 600 (--param wait:=0)'],
    [{ queue: 'all' }, 'queue takes one of: batch, gpu'],
    [
      { hosts: 'a' },
      'hosts is a text; declared: a list of at most 64 texts of 0 to 8 characters (--param \'hosts:=["a"]\')',
    ],
    [{ force: 'yes' }, 'force is a text; declared: true or false (--param force:=true)'],
  ] as const)
    assert.equal(faultOfParameters(parameters, given), why)
})

test('a refusal is read by its fault, and one of a newer helper is not done', () => {
  const message = refusalMessage(refuseTask('NOT_LISTED', 'agent.toml lists no: such thing'))
  assert.deepEqual(readRefusal(message), { fault: 'NOT_LISTED', why: 'agent.toml lists no: such thing' })
  assert.deepEqual(readRefusal('MOON_FULL: x'), { fault: 'NOT_DONE', why: 'MOON_FULL: x' })
})
