import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseToml, type TomlValue } from './toml.ts'

const plain = (value: TomlValue): unknown => {
  if (value.kind === 'table') return Object.fromEntries([...value.entries].map(([key, entry]) => [key, plain(entry)]))
  return value.kind === 'list' ? value.items.map(plain) : value.value
}

const read = (text: string): unknown => {
  const parsed = parseToml(text)
  return parsed.kind === 'invalid' ? `line ${parsed.line}: ${parsed.why}` : plain(parsed)
}

test('tables, lists of tables and every kind of value are read', () => {
  const text = [
    '# a comment',
    'name = "a \\"quoted\\" word" # and another',
    "path = '/a\\b'",
    'mode = 0o640',
    'on = true',
    'words = [',
    '  "one", # first',
    '  "two",',
    ']',
    '[a.b]',
    'n = -3',
    '[[list]]',
    'x = 1',
    '[[list]]',
    'x = 2',
    '[list.below]',
    '"quoted key" = []',
  ].join('\r\n')
  assert.deepEqual(read(text), {
    name: 'a "quoted" word',
    path: '/a\\b',
    mode: 0o640,
    on: true,
    words: ['one', 'two'],
    a: { b: { n: -3 } },
    list: [{ x: 1 }, { x: 2, below: { 'quoted key': [] } }],
  })
})

const wrong: readonly (readonly [text: string, why: string])[] = [
  ['a = 1\na = 2', 'line 2: a is there twice'],
  ['[a]\n[b]\n[a]', 'line 3: [a] is there twice'],
  ['a = 1\n[a]', 'line 2: a is there already, and is no table'],
  ['a = []\n[[a]]', 'line 2: a is there already, and is no list of tables'],
  ['a.b = 1', 'line 1: a dotted key; write a table in its place: [a.b]'],
  ['\n\na = {b = 1}', 'line 3: an inline table; write a table of its own: [NAME]'],
  ['a = 1.5', 'line 1: expected a string in quotes, a whole number, true, false or a list'],
  ['a = 0640', 'line 1: expected a string in quotes, a whole number, true, false or a list'],
  ['a = 2026-01-01', 'line 1: expected a string in quotes, a whole number, true, false or a list'],
  ['a = "b', 'line 1: a string without its end'],
  ['a = """b"""', 'line 1: a string over several lines'],
  ['a = "\\u0041"', 'line 1: an escape other than \\", \\\\, \\n and \\t'],
  ['a = "\u0000"', 'line 1: a control character in a string'],
  ['a = 1 b = 2', 'line 1: something after the end of what was expected'],
  ['a = [1, 2', 'line 1: expected ]'],
  ['= 1', 'line 1: expected a key'],
  ['[a', 'line 1: expected ]'],
  ['a = 99999999999999999999', 'line 1: a number that is too large'],
]

test('whatever else is in the file is an error with its line', () => {
  for (const [text, why] of wrong) assert.equal(read(text), why, text)
})

test('no text makes the reader throw or run on', () => {
  const pieces = [
    '[',
    ']',
    '[[',
    ']]',
    '=',
    '"',
    "'",
    '#',
    '\n',
    ',',
    '.',
    'a',
    '0o7',
    '\\',
    ' ',
    'true',
    '{',
    '__proto__',
  ]
  const texts = fc.oneof(
    fc.string({ maxLength: 80 }),
    fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((all) => all.join('')),
  )
  fc.assert(
    fc.property(texts, (text) => {
      const parsed = parseToml(text)
      assert.ok(parsed.kind === 'table' || (parsed.line >= 1 && parsed.why !== ''))
    }),
    { numRuns: 500 },
  )
})
