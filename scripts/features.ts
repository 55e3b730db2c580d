// `npm run features`: in which folders each feature lies, which feature folders import which, and how much code there is.
// Exits with 1 when a feature lies in too many folders or too many of its folders know each other.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { features, folderOf } from './boundary-rules.ts'
import { importsOf } from './imports-of.ts'
import { filesBelow, root } from './repository.ts'

/** A feature lies in at most this many folders: domain, plane, wire, cli and agent. */
const mostFolders = 5
/** Edges between feature folders within the domain and within the plane. */
const mostEdges = 52

type Source = { readonly file: string; readonly folder: string; readonly text: string }

const isTest = (file: string): boolean => file.endsWith('.test.ts')
const isFeature = (name: string | undefined): boolean => features.some((feature) => feature === name)
/** `alerts` of `plane/alerts`; folders below one belong to it. */
const featureOf = (folder: string): string | null => {
  const name = folder.split('/')[1]
  return name !== undefined && isFeature(name) ? name : null
}
const packageOf = (folder: string): string => folder.split('/')[0] ?? ''

const sources: readonly Source[] = filesBelow(path.join(root, 'src'), root)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, folder: folderOf(file), text: fs.readFileSync(path.join(root, file), 'utf8') }))
const production = sources.filter(({ file }) => !isTest(file))

/** `from -> to` by folders, with the number of imports; folders of mechanics left out. */
const featureEdges = (): Map<string, number> => {
  const edges = new Map<string, number>()
  for (const { file, folder, text } of production) {
    const here = featureOf(folder)
    if (here === null) continue
    for (const { from } of importsOf(file, text)) {
      if (!from.startsWith('src/')) continue
      const there = featureOf(folderOf(from))
      if (there === null || there === here) continue
      const edge = `${packageOf(folder)}/${here} -> ${packageOf(folderOf(from))}/${there}`
      edges.set(edge, (edges.get(edge) ?? 0) + 1)
    }
  }
  return new Map([...edges].sort(([a], [b]) => (a < b ? -1 : 1)))
}

type Lines = { files: number; statements: number; comments: number; imports: number; blank: number }

const nothing = (): Lines => ({ files: 0, statements: 0, comments: 0, imports: 0, blank: 0 })

const linesOf = (text: string): Lines => {
  const counted = { ...nothing(), files: 1 }
  let inside: 'comments' | 'imports' | null = null
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const trimmed = line.trim()
    if (inside !== null) {
      counted[inside] += 1
      if (inside === 'comments' ? trimmed.endsWith('*/') : /\bfrom '|^import '/.test(trimmed)) inside = null
    } else if (trimmed === '') counted.blank += 1
    else if (trimmed.startsWith('//')) counted.comments += 1
    else if (trimmed.startsWith('/*')) {
      counted.comments += 1
      if (!trimmed.endsWith('*/')) inside = 'comments'
    } else if (/^import [^(]/.test(trimmed)) {
      counted.imports += 1
      if (!/\bfrom '|^import '/.test(trimmed)) inside = 'imports'
    } else counted.statements += 1
  }
  return counted
}

const sum = (among: readonly Source[]): Lines => {
  const total = nothing()
  for (const { text } of among) {
    const one = linesOf(text)
    total.files += one.files
    total.statements += one.statements
    total.comments += one.comments
    total.imports += one.imports
    total.blank += one.blank
  }
  return total
}

const row = (name: string, { files, statements, comments, imports, blank }: Lines): string =>
  name.padEnd(24) +
  [files, statements, comments, imports, blank, statements + comments + imports + blank]
    .map((number) => String(number).padStart(11))
    .join('')

const print = (line: string): void => console.log(line)

print('Features and the folders they lie in')
let tooMany = 0
for (const feature of features) {
  const folders = [...new Set(production.map(({ folder }) => folder))]
    .filter((folder) => folder.split('/')[1] === feature && folder.split('/').length === 2)
    .map((folder) => {
      const files = production.filter((source) => source.folder === folder || source.folder.startsWith(`${folder}/`))
      return `${folder} (${files.length})`
    })
  if (folders.length > mostFolders) tooMany += 1
  print(`  ${feature.padEnd(12)} ${folders.length}  ${folders.join('  ')}`)
}

const edges = featureEdges()
const within = (name: string): [string, number][] =>
  [...edges].filter(([edge]) => edge.split(' -> ').every((folder) => folder.startsWith(`${name}/`)))
print('\nEdges between feature folders of one package, with the number of imports')
for (const name of ['domain', 'plane', 'wire', 'agent', 'cli']) {
  const found = within(name)
  print(`  ${name}: ${found.length}`)
  for (const [edge, count] of found) print(`    ${edge}  ${count}`)
}
const counted = within('domain').length + within('plane').length
const across = [...edges].filter(([edge]) => {
  const [from, to] = edge.split(' -> ').map(packageOf)
  return from !== to
})
print(`  domain and plane together: ${counted} (at most ${mostEdges})`)
print(`  from a feature of one package to another feature of another package: ${across.length}`)

print(
  `\n${''.padEnd(24)}${['files', 'statements', 'comments', 'imports', 'blank', 'lines'].map((name) => name.padStart(11)).join('')}`,
)
for (const folder of [...new Set(production.map((source) => source.folder))].sort())
  print(row(folder, sum(production.filter((source) => source.folder === folder))))
print(row('src without tests', sum(production)))
print(row('tests beside them', sum(sources.filter(({ file }) => isTest(file)))))

if (tooMany > 0 || counted > mostEdges) {
  print(`\n${tooMany} features lie in more than ${mostFolders} folders; ${counted} edges of at most ${mostEdges}`)
  process.exitCode = 1
}
