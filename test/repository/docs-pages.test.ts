// The pages of docs/ that are made from the code are what the code says.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { agentSettings } from '#agent/core/settings.ts'
import { helperSettings } from '#agent/helper/settings.ts'
import { planeSettings } from '#plane/config/settings.ts'
import { keyName, type Settings } from '#platform/setting.ts'
import { docsPages } from '../../scripts/docs-pages.ts'
import { leftOverNotes } from '../../scripts/settings-page.ts'

test('docs/SETTINGS.md and docs/CLI.md are what scripts/docs-pages.ts writes', async () => {
  for (const { file, text } of await docsPages())
    assert.ok(fs.existsSync(file) && fs.readFileSync(file, 'utf8') === text, 'run: node scripts/docs-pages.ts')
})

test('every note is of a setting that there is', () => {
  assert.deepEqual(leftOverNotes(), [])
})

test('a setting has a key, an option and a variable that no other setting of its process has', () => {
  for (const settings of [planeSettings, agentSettings, helperSettings] as readonly Settings[]) {
    const variables = Object.values(settings).flatMap(({ variable }) => (variable === null ? [] : [variable]))
    assert.equal(new Set(variables).size, variables.length)
    const keys = Object.keys(settings).map(keyName)
    assert.equal(new Set(keys).size, keys.length)
    for (const { meaning, change } of Object.values(settings)) {
      assert.doesNotMatch(meaning, /\.$/)
      assert.match(change, /\.$/)
    }
  }
})
