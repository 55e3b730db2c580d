// The journal knows the parts of a plane that write entries in their own name.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { systemParts } from '#plane/journal/unknown-filters.ts'
import { filesBelow, root } from '../../scripts/repository.ts'

test('each part of a plane that is an actor in the sources is one that the journal can be asked for', () => {
  const sources = filesBelow(path.join(root, 'src'), root).filter((file) =>
    /^src\/(plane|domain)\/.*(?<!\.test)\.ts$/.test(file),
  )
  const named = sources.flatMap((file) =>
    [...fs.readFileSync(path.join(root, file), 'utf8').matchAll(/'system:([a-z-]+)'/g)].map(([, part]) => part ?? ''),
  )
  assert.ok(new Set(named).size > 15)
  assert.deepEqual(
    named.filter((part) => !systemParts.has(part)),
    [],
  )
})
