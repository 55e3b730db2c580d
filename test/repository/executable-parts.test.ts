// What the executable is made of: what an agent loads of it, and that the same sources make the same parts.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { buildParts, loadedBy, type Parts } from '../../scripts/build-parts.ts'
import { compileParts } from '../../scripts/compile-parts.ts'
import { tempFolder } from '../process/temp-folder.ts'

test('an agent loads no SQLite, and nothing of the plane', async () => {
  const { metafile } = await buildParts()
  const noun = 'src/cli/agent/agent.ts'
  const verbs = (metafile.inputs[noun]?.imports ?? []).filter(({ kind }) => kind === 'dynamic-import')
  assert.ok(verbs.length > 3, 'every verb is loaded when it is called')
  const loaded = [...loadedBy(metafile, ['bin/muster.ts', noun, ...verbs.map((verb) => verb.path)])]
  assert.ok(loaded.includes('src/agent/main.ts'), 'the agent itself is among what was looked at')
  const unwanted = loaded.filter(
    (file) => file.startsWith('src/plane/') || /sqlite|node_modules\/(fastify|pg)\//.test(file),
  )
  assert.deepEqual(unwanted, [])
})

test('the same sources make the same parts, and V8 compiles them to the same bytes', async (t) => {
  assert.equal(digest(tempFolder(t), await buildParts()), digest(tempFolder(t), await buildParts()))
})

const digest = (folder: string, { texts, partOf, thread }: Parts): string => {
  for (const [name, text] of texts) fs.writeFileSync(path.join(folder, name), text)
  compileParts(folder, partOf)
  const hash = createHash('sha256').update(JSON.stringify(partOf)).update(thread)
  for (const name of fs.readdirSync(folder).toSorted()) {
    hash.update(name).update(fs.readFileSync(path.join(folder, name)))
  }
  return hash.digest('hex')
}
