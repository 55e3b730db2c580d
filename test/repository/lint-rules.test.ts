// The linter's configuration, tried: one file for each rule of the house that breaks it, in a copy of the folders. oxlint
// says nothing about an option it does not understand, so only its objection proves that a rule is on.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { root } from '../../scripts/repository.ts'
import { tempFolder } from '../process/temp-folder.ts'

const planted: Record<string, { text: string; rule: string }> = {
  'src/plane/enrollment/date.ts': { text: 'export const x = Date.now()', rule: 'no-restricted-globals' },
  'src/plane/enrollment/new-date.ts': { text: 'export const x = new Date()', rule: 'no-restricted-globals' },
  'src/plane/enrollment/performance.ts': { text: 'export const x = performance.now()', rule: 'no-restricted-globals' },
  'src/plane/enrollment/timeout.ts': { text: 'setTimeout(() => {}, 1)', rule: 'no-restricted-globals' },
  'src/plane/enrollment/interval.ts': { text: 'setInterval(() => {}, 1)', rule: 'no-restricted-globals' },
  'src/plane/enrollment/immediate.ts': { text: 'setImmediate(() => {})', rule: 'no-restricted-globals' },
  'src/plane/enrollment/uuid.ts': { text: 'export const x = crypto.randomUUID()', rule: 'no-restricted-globals' },
  'src/plane/enrollment/fetch.ts': { text: `void fetch('https://x')`, rule: 'no-restricted-globals' },
  'src/plane/enrollment/global.ts': { text: 'globalThis.setTimeout(() => {}, 1)', rule: 'no-restricted-globals' },
  'src/plane/enrollment/random.ts': { text: 'export const x = Math.random()', rule: 'no-restricted-properties' },
  'src/plane/enrollment/hrtime.ts': { text: 'export const x = process.hrtime()', rule: 'no-restricted-properties' },
  'src/domain/any.ts': { text: 'export const x: any = 1', rule: 'no-explicit-any' },
  'src/domain/assertion.ts': {
    text: 'export const x = (y: string | null): string => y!',
    rule: 'no-non-null-assertion',
  },
  'src/domain/default.ts': { text: 'const x = 1\nexport default x', rule: 'no-default-export' },
  'src/domain/console.ts': { text: `console.log('x')`, rule: 'no-console' },
  'src/domain/types.ts': {
    text: `import { Node } from './node.ts'\nexport type X = Node`,
    rule: 'consistent-type-imports',
  },
  'src/domain/cycle-a.ts': { text: `import { b } from './cycle-b.ts'\nexport const a = () => b`, rule: 'no-cycle' },
  // With types: these are silent when the type-aware linter does not run.
  'src/domain/floating.ts': { text: 'Promise.resolve(1)', rule: 'no-floating-promises' },
  'src/domain/switch.ts': {
    text: `export const x = (y: 'a' | 'b'): number => {\n  switch (y) {\n    case 'a':\n      return 1\n  }\n  return 2\n}`,
    rule: 'switch-exhaustiveness-check',
  },
  'src/domain/misused.ts': { text: 'export const x = [1].forEach(async () => {})', rule: 'no-misused-promises' },
  'test/floating.test.ts': { text: 'Promise.resolve(1)', rule: 'no-floating-promises' },
}

const allowed: Record<string, string> = {
  'src/domain/node.ts': 'export type Node = { id: string }\n',
  'src/domain/cycle-b.ts': `import { a } from './cycle-a.ts'\nexport const b = () => a\n`,
  'src/platform/clock.ts': 'export const nowMs = (): number => Date.now() + performance.now() + Math.random()\n',
  'src/domain/node.test.ts': `import { test } from 'node:test'\ntest('a', () => void Date.now())\n`,
  'test/some.test.ts': `import { test } from 'node:test'\ntest('a', async () => {\n  await Promise.resolve(new Date())\n})\n`,
}

type Diagnostic = { code: string; filename: string }

test('the linter objects to every planted violation, and to nothing else', (t) => {
  const folder = tempFolder(t)
  for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json'])
    fs.copyFileSync(path.join(root, name), path.join(folder, name))
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const texts = {
    ...allowed,
    ...Object.fromEntries(Object.entries(planted).map(([file, { text }]) => [file, `${text}\n`])),
  }
  for (const [file, text] of Object.entries(texts)) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), text)
  }
  const oxlint = spawnSync(
    path.join(root, 'node_modules', '.bin', 'oxlint'),
    ['--type-aware', '-f', 'json', 'src', 'test'],
    {
      cwd: folder,
      encoding: 'utf8',
    },
  )
  assert.equal(oxlint.status, 1, oxlint.stderr)
  const { diagnostics } = JSON.parse(oxlint.stdout) as { diagnostics: Diagnostic[] }
  const objections = (file: string): string[] =>
    diagnostics.filter((diagnostic) => diagnostic.filename === file).map((diagnostic) => diagnostic.code)

  for (const [file, { rule }] of Object.entries(planted)) {
    assert.ok(
      objections(file).some((code) => code.includes(`(${rule})`)),
      `${file}: expected ${rule}, got ${objections(file).join(', ') || 'nothing'}`,
    )
  }
  for (const file of Object.keys(allowed).filter((name) => !name.includes('cycle')))
    assert.deepEqual(objections(file), [], file)
})
