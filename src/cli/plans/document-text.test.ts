import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { testCli } from '../../../test/fakes/test-cli.ts'
import type { DocumentBody } from '#wire/plans/document-api.ts'
import { documentYaml, readDocument } from './document-text.ts'

const read = async (input: string) => (await readDocument(testCli({ input }).cli, '-')).document
const documentWith = (more: object) => ({ apiVersion: 'muster/v1', ...more }) as DocumentBody

test('durations, modes and sizes are written as people say them', () => {
  const service = { name: 'app', command: ['/bin/app'], limits: { memoryBytes: 2 ** 31 }, environment: { ttlMs: '5' } }
  const files = [{ path: 'a', mode: 0o640, content: 'x\ny\n' }]
  const yaml = documentYaml(
    documentWith({ domain: { drainMs: 90_000 }, vclusters: [{ name: 'blue', files, services: [service] }] }),
  )
  assert.equal(
    yaml,
    `apiVersion: muster/v1
domain:
  drainMs: 90s
vclusters:
  - name: blue
    files:
      - path: a
        mode: "0640"
        content: |
          x
          y
    services:
      - name: app
        command:
          - /bin/app
        limits:
          memoryBytes: 2GiB
        environment:
          ttlMs: "5"
`,
  )
})

test('what is written is read as it was, whatever texts are in it, and has nothing that a terminal acts on', async () => {
  const few = { maxLength: 2 }
  const text = fc.string({ unit: 'binary', maxLength: 30 }).filter((one) => one.isWellFormed())
  const lines = fc
    .array(fc.constantFrom('a', ' ', '\t', '# b', '- c', 'd: e', '"', "'", '0x1f', '', '\r', '|'))
    .map((all) => all.join('\n'))
  // No document says -0, and 0 is written for it.
  const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((drawn) => (drawn === 0 ? 0 : drawn))
  const value = fc.oneof(
    text,
    lines,
    fc.constantFrom('yes', 'null', '0644', '1e3', '~', '2030-01-31', '<<', '\u001b[31m', '\u202e'),
  )
  const document = fc.record({
    profiles: fc.array(
      fc.record({
        name: value,
        n: fc.oneof(number, fc.boolean(), fc.constant(null)),
      }),
      few,
    ),
    vclusters: fc.array(
      fc.record({
        files: fc.array(fc.record({ mode: fc.integer({ min: 0o400, max: 0o777 }), content: value }), few),
        limits: fc.record({ memoryBytes: fc.nat({ max: 2 ** 40 }).map((bytes) => bytes + 1) }),
        intervalMs: fc.nat({ max: 1e9 }),
        environment: fc.dictionary(fc.constantFrom('A', 'mode', 'ttlMs'), value),
      }),
      few,
    ),
  })
  await fc.assert(
    fc.asyncProperty(document, async (parts) => {
      const whole = documentWith(parts)
      const yaml = documentYaml(whole)
      assert.doesNotMatch(yaml, /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      assert.deepEqual(await read(yaml), JSON.parse(JSON.stringify(whole)))
      assert.deepEqual(await read(JSON.stringify(whole)), JSON.parse(JSON.stringify(whole)))
    }),
    { numRuns: 40 },
  )
})

test('spaces at the beginning of a line stay, also where there is nothing else', async () => {
  for (const content of [' \n', '\n', 'a\n \nb', '  a\nb', '\ta\n', 'a\n\n', ' a', '', 'a\n  ']) {
    const whole = documentWith({ vclusters: [{ files: [{ content }] }] })
    assert.deepEqual(await read(documentYaml(whole)), whole, JSON.stringify(content))
  }
  assert.match(documentYaml(documentWith({ vclusters: [{ files: [{ content: 'a:\n  b\n\nc\n' }] }] })), /content: \|\n/)
})

test('a text that grows without end when it is read is refused', async () => {
  const doubled = ['a: &a [x, x]', 'b: &b [*a, *a]', ...Array.from({ length: 30 }, (_, at) => at)]
    .map((line, at) =>
      typeof line === 'string'
        ? line
        : `c${at}: &c${at} [*${at === 2 ? 'b' : `c${at - 1}`}, *${at === 2 ? 'b' : `c${at - 1}`}]`,
    )
    .join('\n')
  await assert.rejects(read(`apiVersion: muster/v1\n${doubled}`), /alias/i)
})
