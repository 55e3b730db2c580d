import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shippedProfiles } from '#domain/core/shipped-profiles.ts'
import { DomainBody, ProfileBody } from '#wire/settings/settings-api.ts'
import { Failure } from './failure.ts'
import { parseSettings, settingKeys, settingLines } from './settings.ts'

test('values are read as the schema says: durations, fractions, lists, yes and no, none', () => {
  const pairs = [
    'certificate.lifetimeMs=12h',
    'certificate.renewTo=2/3',
    'certificate.renewFrom=0.5',
    'certificate.keyTypes=p256,p384',
    'certificate.uriSan=false',
    'certificate.aiaUrl=none',
    'certificate.subject.cn=node=1',
    'comeback.people=2',
  ]
  assert.deepEqual(parseSettings(ProfileBody, pairs), {
    'certificate.lifetimeMs': 12 * 3600 * 1000,
    'certificate.renewTo': 2 / 3,
    'certificate.renewFrom': 0.5,
    'certificate.keyTypes': ['p256', 'p384'],
    'certificate.uriSan': false,
    'certificate.aiaUrl': null,
    'certificate.subject.cn': 'node=1',
    'comeback.people': 2,
  })
  assert.deepEqual(parseSettings(DomainBody, ['livenessGraceMs=300000']), { livenessGraceMs: 300_000 })
})

test('a number that may be left out is written as a number, none or null', () => {
  const key = 'tasks.approveRunAbove'
  for (const [text, value] of [
    ['50', 50],
    ['0', 0],
    ['none', null],
    ['null', null],
  ] as const)
    assert.deepEqual(parseSettings(DomainBody, [`${key}=${text}`]), { [key]: value })
  assert.throws(() => parseSettings(DomainBody, [`${key}=many`]), /is a number, not many/)
})

test('what is a document is written as JSON, or none', () => {
  const key = 'maintenance.timeSync'
  const service = { name: 'chronyd', command: ['/usr/sbin/chronyd', '-d'] }
  assert.deepEqual(parseSettings(DomainBody, [`${key}=${JSON.stringify(service)}`]), { [key]: service })
  assert.deepEqual(parseSettings(DomainBody, [`${key}=none`]), { [key]: null })
  assert.throws(() => parseSettings(DomainBody, [`${key}=chronyd -d`]), /is JSON, or none/)
})

test('what is not a setting is refused before anything is sent', () => {
  const wrong = ['lifetime=1h', 'certificate=1', 'certificate.lifetimeMs', '=1', 'certificate.lifetimeMs=soon']
  const alsoWrong = [
    'certificate.uriSan=yes',
    'comeback.people=two',
    'certificate.renewTo=1/0',
    '__proto__=1',
    'toString=1',
  ]
  for (const pair of [...wrong, ...alsoWrong]) {
    assert.throws(() => parseSettings(ProfileBody, [pair]), Failure, pair)
  }
  assert.throws(() => parseSettings(DomainBody, ['drainMs=1m', 'drainMs=2m']), /given twice/)
})

test('a key that is written wrong, or without its group, is answered with the one that was probably meant', () => {
  const next = (key: string): string => {
    try {
      parseSettings(ProfileBody, [`${key}=1`])
    } catch (error) {
      return error instanceof Failure ? (error.next ?? '') : ''
    }
    return ''
  }
  for (const key of ['certificate.lifetimMs', 'Certificate.lifetimems', 'certficate.lifetimeMs', 'lifetimeMs'])
    assert.match(next(key), /^Did you mean certificate\.lifetimeMs\? All there are: /, key)
  assert.match(next('colour'), /^These there are: /)
})

test('what profile show prints, profile set takes, for every profile that ships', () => {
  for (const { deletedAtMs: _live, ...profile } of shippedProfiles) {
    const pairs = settingLines(profile).map(([key, value]) => `${key}=${value}`)
    const read = parseSettings(ProfileBody, pairs)
    assert.deepEqual(Object.keys(read).sort(), settingKeys(ProfileBody).sort())
    assert.deepEqual(settingLines(nested(read)).sort(), settingLines(profile).sort())
  }
})

const nested = (flat: Record<string, unknown>): object => {
  const whole: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(flat)) {
    const path = key.split('.')
    const last = path.pop() ?? ''
    let at = whole
    for (const name of path) at = (at[name] ??= {}) as Record<string, unknown>
    at[last] = value
  }
  return whole
}
