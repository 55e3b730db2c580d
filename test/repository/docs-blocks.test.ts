// A block of `sh`, `bash`, `shell` or `console` in the documents is run by a test, or says why it is not. A comment before it, which no reader of the page sees, says so:
// where readme-steps.ts runs it, `<!-- not run: REASON -->`, or `<!-- run by TEST -->` for a test that takes it from the page itself.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { filesBelow, root } from '../../scripts/repository.ts'

const pages = ['README.md', ...filesBelow(path.join(root, 'docs'), root).filter((file) => file.endsWith('.md'))]

/** Tests that run every block of `sh` of a page by its comments, or all blocks of it. */
const runBy: Readonly<Record<string, string>> = {
  'README.md': 'test/transcripts/readme.test.ts',
  'docs/API.md': 'test/peers/openssl-curl-enrol.test.ts',
  'docs/INSTALL.md': 'test/packages/installed-packages.test.ts',
}

const mostNotRun = 25

type Block = { readonly where: string; readonly comment: string | null }

const blocksOf = (page: string, text: string): Block[] => {
  const lines = text.split('\n')
  return lines.flatMap((line, at) => {
    if (!/^ *```(sh|bash|shell|console)\b/.test(line)) return []
    const before = lines.slice(0, at).findLast((one) => one.trim() !== '') ?? ''
    return [{ where: `${page}:${at + 1}`, comment: /^<!-- (.*) -->$/.exec(before)?.[1] ?? null }]
  })
}

/** A test that runs a page reads it, or a file that it imports does. */
const namesPage = (test: string, page: string): boolean => {
  const text = fs.readFileSync(path.join(root, test), 'utf8')
  const imported = [...text.matchAll(/from '(\.[^']+\.ts)'/g)].map(([, file]) =>
    path.join(path.dirname(test), file ?? ''),
  )
  const name = new RegExp(`['/]${path.basename(page).replace('.', '[.]')}'`)
  return [text, ...imported.map((file) => fs.readFileSync(path.join(root, file), 'utf8'))].some((one) => name.test(one))
}

const fault = (page: string, { comment }: Block): string | null => {
  const test = /^run by (\S+)$/.exec(comment ?? '')?.[1] ?? runBy[page]
  if (comment?.startsWith('not run: ') === true) return null
  if (test === undefined) return 'no test runs it, and it does not say why'
  if (!fs.existsSync(path.join(root, test))) return `there is no ${test}`
  return namesPage(test, page) ? null : `${test} does not name ${path.basename(page)}`
}

test('every block of sh in the documents is run by a test, or says why it is not', () => {
  const found = pages.flatMap((page) =>
    blocksOf(page, fs.readFileSync(path.join(root, page), 'utf8')).map((block) => ({ page, block })),
  )
  assert.ok(found.length > 15)
  const faults = found.flatMap(({ page, block }) => {
    const what = fault(page, block)
    return what === null ? [] : [`${block.where}: ${what}`]
  })
  assert.deepEqual(faults, [])
  const notRun = found.filter(({ block }) => block.comment?.startsWith('not run: ') === true)
  assert.ok(notRun.length <= mostNotRun, `${notRun.length} blocks are not run`)
})

test('a block that no test runs is found', () => {
  const [block] = blocksOf('NEW.md', 'Text:\n\n```sh\nmuster node list\n```\n')
  assert.deepEqual(block, { where: 'NEW.md:3', comment: null })
  assert.equal(fault('NEW.md', block), 'no test runs it, and it does not say why')
  assert.equal(fault('NEW.md', { ...block, comment: 'not run: it takes an hour' }), null)
  assert.equal(fault('NEW.md', { ...block, comment: 'run by test/none.test.ts' }), 'there is no test/none.test.ts')
  const readme = 'test/transcripts/readme.test.ts'
  assert.equal(fault('NEW.md', { ...block, comment: `run by ${readme}` }), `${readme} does not name NEW.md`)
  assert.equal(fault('README.md', { ...block, comment: null }), null)
})
