// A checker that finds nothing reports success. One reference of every kind is broken here on purpose, beside one that
// leads somewhere.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { brokenReferences, checkReferences, lostPages, targetsIn } from '../../scripts/references.ts'
import { root } from '../../scripts/repository.ts'

const pages = new Map([
  ['docs/RULINGS.md', '# Rulings\n\n### Ruling 3: Another key\n\n### Ruling 4: Repeats\n\n### Ruling 6: Recovery\n'],
  [
    'docs/REQUIREMENTS.md',
    [
      '## By number',
      '- **001**: PKI spec. Sections:',
      '  §1 scope, §10 task signing.',
      '- **002**: Enrollment.',
      '- **R-004** (001): a move is atomic',
      '| T19 | denied |',
      '| X5b | token or hardware |',
      '| L3 | shared keys |',
      '',
    ].join('\n'),
  ],
])
const files = [...pages.keys(), 'README.md', 'src/domain/core/node.ts', 'test/flows/alerts.test.ts']
const targets = targetsIn(files, pages)
const brokenIn = (file: string, text: string): string[] =>
  brokenReferences(file, text, targets).map((found) => found.replace(' leads nowhere', ''))

test('every reference of the repository leads somewhere', () => {
  assert.deepEqual(checkReferences(root), [])
})

type Planted = {
  readonly kind: string
  readonly file: string
  readonly good: string
  readonly bad: string
  readonly found: string
}

const source = 'src/domain/core/node.ts'
const page = 'docs/RULINGS.md'

const planted: readonly Planted[] = [
  {
    kind: 'ruling',
    file: source,
    good: '// May it (ruling 3)?',
    bad: '// May it (ruling 7)?',
    found: 'ruling: ruling 7',
  },
  {
    kind: 'one of several rulings',
    file: source,
    good: '// rulings 3, 4 and 6',
    bad: '// rulings 3, 5 and 6',
    found: 'ruling: ruling 5',
  },
  {
    kind: 'ruling in a test name',
    file: source,
    good: `test('ruling 6: x')`,
    bad: `test('ruling 60: x')`,
    found: 'ruling: ruling 60',
  },
  { kind: 'requirement', file: source, good: '// (R-004)', bad: '// (R-005)', found: 'requirement: R-005' },
  { kind: 'test number', file: source, good: `test('T19: x')`, bad: `test('T20: x')`, found: 'requirement: T20' },
  {
    kind: 'compliance test of document 002',
    file: source,
    good: `test('002-19: x')`,
    bad: `test('002-20: x')`,
    found: 'requirement: T20',
  },
  { kind: 'contradiction', file: page, good: 'See X5b.', bad: 'See X5.', found: 'requirement: X5' },
  { kind: 'finding in a comment', file: source, good: '// L3: one key', bad: '// L4: one key', found: 'finding: L4' },
  {
    kind: 'finding in a test name',
    file: source,
    good: `test('R-004, L3: x')`,
    bad: `test('R-004, L4: x')`,
    found: 'finding: L4',
  },
  {
    kind: 'source document',
    file: source,
    good: '// as seed 002 says',
    bad: '// as seed 007 says',
    found: 'source document: 007',
  },
  {
    kind: 'source document by its number',
    file: page,
    good: "002's token (001)",
    bad: 'its token (006)',
    found: 'source document: 006',
  },
  {
    kind: 'section of a source document',
    file: source,
    good: '// 001 §10',
    bad: '// 001, §11',
    found: 'section: 001 §11',
  },
  {
    kind: 'section of a document elsewhere',
    file: source,
    good: '// RFC 7748 §6.1',
    bad: '// DESIGN §3',
    found: 'section: DESIGN §3',
  },
  {
    kind: 'whole path',
    file: page,
    good: 'in `src/domain/core/node.ts`',
    bad: 'in `src/domain/gone.ts`',
    found: 'path: src/domain/gone.ts',
  },
  {
    kind: 'end of a path',
    file: source,
    good: '// core/node.ts, node.ts',
    bad: '// flows/node.ts',
    found: 'path: flows/node.ts',
  },
  { kind: 'trailing comment', file: source, good: 'x() // node.ts', bad: 'x() // gone.ts', found: 'path: gone.ts' },
  { kind: 'folder', file: source, good: '// inside src/domain', bad: '// inside src/gone', found: 'path: src/gone' },
  {
    kind: 'page in a message',
    file: source,
    good: `'see docs/RULINGS.md'`,
    bad: `'see docs/GONE.md'`,
    found: 'path: docs/GONE.md',
  },
  {
    kind: 'link',
    file: page,
    good: '[x](../README.md) [y](../src/domain)',
    bad: '[x](README.md)',
    found: 'link: README.md',
  },
  {
    kind: 'anchor',
    file: page,
    good: '[x](#ruling-3-another-key) [y](REQUIREMENTS.md#by-number)',
    bad: '[x](REQUIREMENTS.md#by-name)',
    found: 'link: REQUIREMENTS.md#by-name',
  },
]

for (const { kind, file, good, bad, found } of planted) {
  test(`a reference that leads nowhere is found: ${kind}`, () => {
    assert.deepEqual(brokenIn(file, good), [])
    assert.deepEqual(brokenIn(file, `\n${bad}\n`), [`${file}:2: ${found}`])
  })
}

test('what only looks like a reference is none', () => {
  const code = [
    `const planted = 'src/domain/gone.ts'`,
    `alert('n1', 'A1')`,
    '// 10,000 nodes, 24 h, gpu-001, RFC 6455, bench/NAME.ts, test/faults/start-*.test.ts, https://example.org/gone.md',
  ]
  assert.deepEqual(brokenIn(source, code.join('\n')), [])
})

test('a ruling whose number stands on the next line of its comment is found', () => {
  assert.deepEqual(brokenIn(source, '// so it is refused (ruling\n// 9)'), [`${source}:1: ruling: ruling 9`])
})

test('the glossary has each word once, in alphabetical order', () => {
  const text = fs.readFileSync(path.join(root, 'docs/GLOSSARY.md'), 'utf8')
  const words = [...text.matchAll(/^- \*\*(.+?)\*\*:/gm)].map(([, word = '']) => word.toLowerCase())
  assert.ok(words.length > 100)
  assert.deepEqual(words, [...new Set(words)].toSorted())
})

test('a page that no link leads to from the first page is found, and one that only such a page links to', () => {
  const texts = new Map([
    ['docs/README.md', '[one](ONE.md#part), [decisions](decisions/)'],
    ['docs/ONE.md', '[back](README.md)'],
    ['docs/decisions/README.md', '[why](why.md)'],
    ['docs/decisions/why.md', ''],
    ['docs/LOST.md', '[too](ALSO-LOST.md)'],
    ['docs/ALSO-LOST.md', ''],
    ['README.md', '[lost](docs/LOST.md)'],
  ])
  assert.deepEqual(lostPages(texts), ['docs/LOST.md: no link leads to it', 'docs/ALSO-LOST.md: no link leads to it'])
})
