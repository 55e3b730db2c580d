import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseBatch } from './batch-file.ts'
import { Failure } from '#cli/kit/failure.ts'

test('a line becomes a registration, with several addresses in one cell', () => {
  const text = [
    '# the second rack',
    'id,profile,mac,bmc_serial,names,provisioning',
    'hpc-1,hpc-diskless,52:54:00:00:00:01;52:54:00:00:00:02,CN1,a.example 10.0.0.7,ready',
    'hpc-2,,52:54:00:00:00:03 52:54:00:00:00:04,,,',
    '',
    '"hpc-3", hpc-diskless ,,"with, comma",,',
  ].join('\r\n')
  assert.deepEqual(parseBatch(text, 'gpu-cloud'), [
    {
      kind: 'request',
      line: 3,
      request: {
        id: 'hpc-1',
        profile: 'hpc-diskless',
        macs: ['52:54:00:00:00:01', '52:54:00:00:00:02'],
        bmc_serial: 'CN1',
      },
      tags: [],
      names: ['a.example', '10.0.0.7'],
      provisioning: 'ready',
    },
    {
      kind: 'request',
      line: 4,
      request: { id: 'hpc-2', profile: 'gpu-cloud', macs: ['52:54:00:00:00:03', '52:54:00:00:00:04'] },
      tags: [],
      names: [],
      provisioning: null,
    },
    {
      kind: 'request',
      line: 6,
      request: { id: 'hpc-3', profile: 'hpc-diskless', bmc_serial: 'with, comma' },
      tags: [],
      names: [],
      provisioning: null,
    },
  ])
})

test('columns may be left out and stand in any order; only the id is needed', () => {
  assert.deepEqual(parseBatch('\ufeffmac,id\n52:54:00:00:00:01,a\n', undefined), [
    {
      kind: 'request',
      line: 2,
      request: { id: 'a', macs: ['52:54:00:00:00:01'] },
      tags: [],
      names: [],
      provisioning: null,
    },
  ])
})

test('a column that is not known becomes a tag, beside those of the column of that name', () => {
  const lines = parseBatch('id,rack,Tags,zone\na,R12,h100 NVLink=4,eu-1\nb,,,eu-1\nc,no spaces,,\n', undefined)
  assert.deepEqual(
    lines.map((line) => (line.kind === 'request' ? line.tags : line.why)),
    [
      ['h100', 'nvlink:4', 'rack:r12', 'zone:eu-1'],
      ['zone:eu-1'],
      'has rack:no spaces, which is no tag: letters, digits, dots, dashes, underscores and colons, at most 63',
    ],
  )
})

test('a known column that is written differently is asked about instead of becoming a tag', () => {
  for (const [header, meant] of Object.entries({ 'id,MACs': 'mac', 'id,bmc-serial': 'bmc_serial', 'id,name': 'names' }))
    assert.throws(() => parseBatch(`${header}\na,b\n`, undefined), new RegExp(`did you mean ${meant}\\?`))
})

test('a state of a machine that there is not is a bad line', () => {
  const [line] = parseBatch('id,provisioning\na,installed\n', undefined)
  assert.ok(line?.kind === 'unusable')
  assert.match(line.why, /is installed; a machine is commissioning, .*, failed/)
})

test('a line that the plane would refuse by its schema, with all lines of the call, is a bad line', () => {
  const tags = Array.from({ length: 65 }, (_, at) => `t${at}`).join(' ')
  const lines = parseBatch(
    [
      'id,profile,mac,bmc_serial,tags',
      'gpu 1,,,,',
      'GPU-2,,,,',
      `gpu-3,${'p'.repeat(65)},,,`,
      'gpu-4,,00:11:22:33:44:55:66:77,,',
      `gpu-5,,,${'s'.repeat(129)},`,
      `gpu-6,,,,${tags}`,
      'gpu-7,,02:4d:55:00:01:01,SN1,h100',
    ].join('\n'),
    undefined,
  )
  assert.deepEqual(
    lines.map((line) =>
      line.kind === 'request'
        ? line.request.id
        : `${line.line} ${/^has .*?(?= than|[:;]| that)/.exec(line.why)?.[0] ?? line.why}`,
    ),
    [
      '2 has a name',
      '3 has a name',
      '4 has a profile with a longer name',
      '5 has a cell mac',
      '6 has a serial number',
      '7 has 65 tags',
      'gpu-7',
    ],
  )
})

test('a bad line is reported by its number, and the others stand', () => {
  const lines = parseBatch('id,mac\na,1,2\n,x\nb,\nb,\n', undefined)
  assert.deepEqual(
    lines.map((line) => [line.kind, line.line]),
    [
      ['unusable', 2],
      ['unusable', 3],
      ['request', 4],
      ['unusable', 5],
    ],
  )
})

test('a file without a usable header is refused as a whole', () => {
  for (const text of ['', 'a,b\n1,2\n', 'gpu-1,gpu-cloud\n', 'id,id\na,b\n', 'id,mac\n"a\n']) {
    assert.throws(() => parseBatch(text, undefined), Failure, JSON.stringify(text))
  }
})
