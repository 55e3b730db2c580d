// `npm run features`: in which folders each feature lies, which feature folders import which, and how much code there is.
// Exits with 1 when a feature lies in too many folders or too many of its folders know each other.
//
// Counted are the folders of a feature at any depth, and the edges within the domain and within the plane, where a feature decides
// and acts. Printed only: edges in `wire`, `agent` and `cli` and between two packages, which follow from what calls answer and from which
// package stands on which; and files of mechanics that have the word of a feature in their name.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { pathToFileURL } from 'node:url'
import { features, folderOf } from './boundary-rules.ts'
import { importsOf } from './imports-of.ts'
import { filesBelow, root } from './repository.ts'

/** domain, plane, wire, cli, agent; of `fleet` and `tasks` the helper of the agent, too: it is a process with rights of its own. */
export const mostFolders = 6
/**
 * Edges between feature folders within the domain and within the plane: as many as there are. Of these 34 are between the 15 features
 * for which 40 was the aim; `programs`, `tasks`, `workers` and `issuers` have come since, with 21.
 */
export const mostEdges = 55

/** Folders of a feature that have another name. */
const alsoOf: Readonly<Record<string, (typeof features)[number]>> = { 'agent/helper/overlay': 'fleet' }

type Source = { readonly file: string; readonly folder: string; readonly text: string }

const isTest = (file: string): boolean => file.endsWith('.test.ts')
const isFeature = (name: string | undefined): boolean => features.some((feature) => feature === name)
/** `alerts` of `plane/alerts`, `tasks` of `agent/helper/tasks`. The folders of the store are mechanics, `plane/store/journal` too. */
const featureOf = (folder: string): string | null =>
  folder.startsWith('plane/store/') ? null : (alsoOf[folder] ?? folder.split('/').slice(1).find(isFeature) ?? null)
const packageOf = (folder: string): string => folder.split('/')[0] ?? ''

const sources: readonly Source[] = filesBelow(path.join(root, 'src'), root)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, folder: folderOf(file), text: fs.readFileSync(path.join(root, file), 'utf8') }))
const production = sources.filter(({ file }) => !isTest(file))

/** The folders of a feature, with the number of their files. */
export const foldersOf = (feature: string): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const { folder } of production)
    if (featureOf(folder) === feature) counts.set(folder, (counts.get(folder) ?? 0) + 1)
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Files in folders of mechanics whose name has the word of the feature. Some of them only share the word (`plane/config/settings.ts`). */
const namedAfter = (feature: string): readonly string[] =>
  production
    .filter(({ folder }) => featureOf(folder) === null)
    .map(({ file }) => file)
    .filter((file) => {
      const words = path.basename(file, '.ts').split('-')
      return words.includes(feature) || words.includes(feature.replace(/s$/, ''))
    })

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

const edges = featureEdges()
const within = (name: string): [string, number][] =>
  [...edges].filter(([edge]) => edge.split(' -> ').every((folder) => folder.startsWith(`${name}/`)))
export const countedEdges = (): number => within('domain').length + within('plane').length

const print = (line: string): void => console.log(line)

const printAll = (): void => {
  print('Features and the folders they lie in')
  for (const feature of features) {
    const folders = [...foldersOf(feature)].map(([folder, files]) => `${folder} (${files})`)
    print(`  ${feature.padEnd(12)} ${folders.length}  ${folders.join('  ')}`)
  }
  print('\nNot counted: files of mechanics that have the word of a feature in their name')
  for (const feature of features) {
    const files = namedAfter(feature)
    if (files.length > 0) print(`  ${feature.padEnd(12)} ${String(files.length).padStart(2)}  ${files.join('  ')}`)
  }

  print('\nEdges between feature folders of one package, with the number of imports')
  for (const name of ['domain', 'plane', 'wire', 'agent', 'cli']) {
    const found = within(name)
    print(`  ${name}: ${found.length}`)
    for (const [edge, count] of found) print(`    ${edge}  ${count}`)
  }
  const across = [...edges].filter(([edge]) => {
    const [from, to] = edge.split(' -> ').map(packageOf)
    return from !== to
  })
  print(`  counted, domain and plane together: ${countedEdges()} (at most ${mostEdges})`)
  print(`  not counted, from a feature of one package to another feature of another package: ${across.length}`)

  print(
    `\n${''.padEnd(24)}${['files', 'statements', 'comments', 'imports', 'blank', 'lines'].map((name) => name.padStart(11)).join('')}`,
  )
  for (const folder of [...new Set(production.map((source) => source.folder))].sort())
    print(row(folder, sum(production.filter((source) => source.folder === folder))))
  print(row('src without tests', sum(production)))
  print(row('tests beside them', sum(sources.filter(({ file }) => isTest(file)))))
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  printAll()
  const tooMany = features.filter((feature) => foldersOf(feature).size > mostFolders)
  if (tooMany.length > 0 || countedEdges() > mostEdges) {
    print(
      `\n${tooMany.length} features lie in more than ${mostFolders} folders; ${countedEdges()} edges of at most ${mostEdges}`,
    )
    process.exitCode = 1
  }
}
