import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { filesForBothStores, onceInTheShortRun, onceIsEnough } from '../../scripts/both-stores.ts'
import { root } from '../../scripts/repository.ts'

test('what has a plane or a store of its own is run on both stores, through whatever it gets it', () => {
  const asked = [
    'test/compliance/enrollment-tokens.test.ts',
    'test/flows/enroll-node.test.ts',
    'test/flows/agent-sources.test.ts',
    'test/faults/plane-kill.test.ts',
  ]
  assert.deepEqual(filesForBothStores(root, asked, false), asked.slice(0, 2))
})

test('what is run once although it has a store exists, and says why', () => {
  for (const [file, why] of Object.entries(onceIsEnough)) {
    assert(fs.existsSync(path.join(root, file)), file)
    assert(why.length > 10, file)
    assert.deepEqual(filesForBothStores(root, [file], true), [])
  }
})

test('what is run once in the short run is run on both stores in the long one', () => {
  assert.deepEqual(filesForBothStores(root, onceInTheShortRun, false), [])
  assert.deepEqual(filesForBothStores(root, onceInTheShortRun, true), onceInTheShortRun)
})

test('a race, a lost commit, SQL and a plane that is started again bring the second run; what is only asked and answered does not', () => {
  const twice = [
    'test/flows/vclusters.test.ts',
    'test/flows/banned-meanwhile.test.ts',
    'test/flows/journal-watch.test.ts',
    'test/compliance/liveness-grace.test.ts',
    'test/compliance/unstorable-text.test.ts',
    'test/system/channel-sessions.test.ts',
    'test/system/restored-backup.test.ts',
    'test/system/tampered-rows.test.ts',
    'test/peers/step-ca-kills.test.ts',
    'test/peers/issuer-lives.test.ts',
  ]
  const once = [
    'test/flows/cli-commands.test.ts',
    'test/system/agent-recovery.test.ts',
    'test/system/node-access.test.ts',
  ]
  const neverTwice = ['test/peers/issuer-migration.test.ts']
  assert.deepEqual(filesForBothStores(root, [...twice, ...once, ...neverTwice], false), twice)
  assert.deepEqual(filesForBothStores(root, [...twice, ...once, ...neverTwice], true), [...twice, ...once])
})
