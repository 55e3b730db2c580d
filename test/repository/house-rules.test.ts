// The rules of the house, kept by the repository itself. What the linter and
// scripts/boundary-rules.ts can say is said there.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { filesBelow, root } from '../../scripts/repository.ts'

const files = filesBelow(root, root)
const texts = files.filter((file) =>
  /\.(ts|js|json|md|sh|service|txt|yaml|yml)$|^(muster|\.ci\/run|\.npmrc)$/.test(file),
)
const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')
const sources = files.filter((file) => file.startsWith('src/') && file.endsWith('.ts'))
const thisFile = 'test/repository/house-rules.test.ts'

/** `file:line` of every match, in the files given. */
const matches = (among: readonly string[], shape: RegExp): string[] =>
  among
    .filter((file) => file !== thisFile)
    .flatMap((file) =>
      read(file)
        .split('\n')
        .flatMap((line, at) => (shape.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : [])),
    )

test('no file of src is longer than 350 lines', () => {
  assert.deepEqual(
    sources.filter((file) => read(file).split('\n').length > 350),
    [],
  )
})

test('every file has a subject: none is called utils, helpers, common or manager', () => {
  const named = files.filter((file) => file.endsWith('.ts'))
  assert.deepEqual(
    named.filter((file) => /(^|[/.-])(utils?|helpers?|common|manager|misc)[.-]/.test(file)),
    [],
  )
})

test('no index.ts only re-exports', () => {
  const reExports = (text: string): boolean =>
    text
      .replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, '')
      .split(/;|\n(?=export|import)/)
      .every((statement) => statement.trim() === '' || /^export\s+(type\s+)?(\*|\{)[^]*\bfrom\b/.test(statement.trim()))
  assert.deepEqual(
    files.filter((file) => /(^|\/)index\.ts$/.test(file) && reExports(read(file))),
    [],
  )
})

test('files of the agent name the parts they use: only its root is handed all of them', () => {
  const inFolders = sources.filter((file) => /^src\/agent\/[^/]+\//.test(file))
  assert.deepEqual(matches(inFolders, /[:=] AgentParts\b(?!\[| &)/), [])
})

test('functions of the agent and of the command line take their parts by name: no bag, and none merged into another', () => {
  const ours = sources.filter((file) => /^src\/(agent|cli)\//.test(file) && !file.endsWith('.test.ts'))
  assert.deepEqual(matches(ours, /\btype \w+Deps\b/), [])
  const merging = matches(ours, /\.\.\.(agent|cli|core|deps|host|parts)\b(?!\.)/)
  assert.deepEqual(
    merging.map((found) => found.replace(/:.*/, '')),
    ['src/agent/core/agent-parts.ts'],
  )
})

test('functions of the plane take the core and their parts by name: no bag of both, neither merged into another', () => {
  const ofPlane = sources.filter((file) => /^src\/(plane|platform)\//.test(file) && !file.endsWith('.test.ts'))
  assert.deepEqual(matches(ofPlane, /\b(type \w+Deps|deps)\b/), [])
  const merging = matches(ofPlane, /\.\.\.core\b(?!\.)/)
  assert.deepEqual(
    merging.map((found) => found.replace(/:.*/, '')),
    ['src/plane/core/core.ts'],
  )
  // Parts are named where they are handed on: `...parts`, `...parts.workerParts` and `...workerParts` hide what is in them.
  assert.deepEqual(matches(ofPlane, /\.\.\.(\w+\.)*(parts|\w+Parts)\b(?![.(])/), [])
})

test('names of TypeScript files are lower case with dashes', () => {
  const ours = files.filter((file) => file.endsWith('.ts'))
  assert.deepEqual(
    ours.filter((file) => !/^([a-z0-9][a-z0-9.-]*\/)*[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*\.ts$/.test(file)),
    [],
  )
})

test('nothing is left to be done', () => {
  assert.deepEqual(matches(texts, /\b(TODO|FIXME|HACK|XXX)\b/), [])
})

test('no test runs alone, none is switched off, and only a missing peer skips one', () => {
  const tests = files.filter((file) => file.startsWith('test/') || file.endsWith('.test.ts'))
  // A test may skip only through peer.ts, where a missing peer is a failure in CI. The reporter's test has one to report.
  const maySkip = ['test/peers/peer.ts', 'test/repository/test-reporter.test.ts']
  assert.deepEqual(
    matches(tests, /\.only\(|\bonly: true|\b(test|it|describe|suite)\.(skip|todo)\b|\b(skip|todo): true\b/),
    [],
  )
  assert.deepEqual(
    matches(
      tests.filter((file) => !maySkip.includes(file)),
      /\.skip\(/,
    ),
    [],
  )
})

test('no file knows the machine it was written on', () => {
  assert.deepEqual(matches(texts, /(^|[\s"'`(=:])\/(work|root|home\/[a-z]\w*|Users\/\w+|tmp\/bash_jobs)\//), [])
})

test('the lock file names no registry', () => {
  const lock = read('package-lock.json')
  assert.equal(/"resolved": "https?:/.test(lock), false)
  assert.equal(/^registry/m.test(read('.npmrc')), false)
})

test('every dependency has an exact version', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string> | undefined>
  const all = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((group) =>
    Object.entries(manifest[group] ?? {}),
  )
  assert.ok(all.length > 0)
  assert.deepEqual(
    all.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)),
    [],
  )
})

test('the commands of the README are executable', () => {
  for (const file of ['muster', '.ci/run']) assert.ok(fs.statSync(path.join(root, file)).mode & 0o100, file)
})

test('no key or token lies in the repository', () => {
  const material = /-----BEGIN [A-Z ]*PRIVATE KEY-----\s*\n|\b(enroll|muster_key)_[A-Za-z0-9_-]{43}\b/
  const made = files
    .filter((file) => !file.endsWith('.test.ts') && texts.includes(file))
    .filter((file) => material.test(read(file)))
  assert.deepEqual(
    made.filter((file) => !file.startsWith('test/vectors/')),
    [],
  )
})
