import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { openLane } from '../../scripts/test-lane.ts'
import { reportText, totalText, type FileReport } from '../../scripts/test-reporter.ts'
import { tempFolder } from '../process/temp-folder.ts'

const files = {
  'good.test.ts': `test('a', () => console.log('chatter')); test('b', (t) => t.skip('no such peer')); test('c', (t) => t.diagnostic('took 3 ms'))`,
  'bad.test.ts': `test('d', () => { console.log('last words'); throw new Error('the reason') })`,
  'crash.test.ts': `throw new Error('not even started')`,
  'exit.test.ts': `test('e', () => process.exit(3))`,
  'after.test.ts': `import { before } from 'node:test'; before(() => assert.equal(process.env.ONE, '1')); test('f', () => assert(true))`,
}

test('a failure, a crash, a skip and a note are all printed, and the output of a file only when it failed', async (t) => {
  const folder = tempFolder(t)
  const lane = openLane({ env: process.env, countAssertions: true })
  const reports: FileReport[] = []
  let told = ''
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name)
    fs.writeFileSync(file, `import assert from 'node:assert/strict'\nimport { test } from 'node:test'\n${text}\n`)
    const env: Record<string, string> = name === 'after.test.ts' ? { ONE: '1' } : {}
    const { report, printed } = await lane.run({ file, run: '', env, timeoutMs: 60_000 })
    assert.ok(report.cpuSeconds === null || report.cpuSeconds >= 0, String(report.cpuSeconds))
    reports.push(report)
    told += reportText(name, report, printed)
  }
  assert.equal(await lane.close(), null)
  told += totalText(reports, 1)
  for (const expected of [
    /^ok +good\.test\.ts {2}3 tests/m,
    /^ +skipped: b: no such peer$/m,
    /^ +took 3 ms$/m,
    /^FAILED bad\.test\.ts {2}1 tests/m,
    /Error: the reason\n +at /,
    /printed by this file ---\nlast words/,
    /^FAILED crash\.test\.ts {2}did not finish/m,
    /not even started/,
    /^FAILED exit\.test\.ts {2}did not finish\n.*its process ended \(exit code 3\)/m,
    /^ok +after\.test\.ts {2}1 tests/m,
    /^3 passed, 3 failed, 1 skipped, 2 assertions in 1\.0 s/m,
  ]) {
    assert.match(told, expected)
  }
  assert.doesNotMatch(told, /chatter/)
})

test('a file is run again under another name, and only its own hooks hold for its tests', async (t) => {
  const folder = tempFolder(t)
  const lane = openLane({ env: process.env, countAssertions: false })
  const hooked = `import { before, test } from 'node:test'\nbefore(() => { throw new Error('a hook') })\ntest('a', () => {})\n`
  const plain = `import { test } from 'node:test'\ntest('b', () => {})\n`
  const outcomes: string[] = []
  for (const [name, text, run] of [
    ['plain', plain, ''],
    ['hooked', hooked, ''],
    ['plain', plain, '[again]'],
  ] as const) {
    const file = path.join(folder, `${name}.test.ts`)
    fs.writeFileSync(file, text)
    const { report } = await lane.run({ file, run, env: {}, timeoutMs: 60_000 })
    outcomes.push(`${report.outcome} ${report.counts.tests}`)
    if (name === 'hooked') assert.match(report.failures.join('\n'), /a hook/)
  }
  assert.equal(await lane.close(), null)
  assert.deepEqual([outcomes[0], outcomes[2]], ['passed 1', 'passed 1'])
})

test('a file that does not end fails, with what it was waiting for', async (t) => {
  const file = path.join(tempFolder(t), 'endless.test.ts')
  fs.writeFileSync(
    file,
    `import { test } from 'node:test'\ntest('for ever', () => new Promise((resolve) => setTimeout(resolve, 1e6).unref()))\n`,
  )
  const lane = openLane({ env: process.env, countAssertions: false })
  const { report } = await lane.run({ file, run: '', env: {}, timeoutMs: 500 })
  assert.equal(report.outcome, 'did not finish')
  assert.match(report.failures.join('\n'), /for ever/)
  assert.match(report.failures.join('\n'), /not over after 0\.5 s/)
  assert.equal(await lane.close(), null)
})
