// References that lead nowhere: numbers of rulings, requirements, tests and findings without an entry in docs/, sections of
// source documents that are not listed, files named in comments and documents that do not exist, broken links, and pages that no link leads to.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { filesBelow } from './repository.ts'

const folders = ['bin', 'src', 'test', 'bench', 'scripts', 'docs', 'packaging']
const pages = ['README.md', 'CHANGELOG.md']
const rulingsPage = 'docs/RULINGS.md'
const requirementsPage = 'docs/REQUIREMENTS.md'
/** Where a reader begins. */
const firstPage = 'docs/README.md'
/** It plants references that lead nowhere. */
const ownTest = 'test/repository/references.test.ts'

/** What a reference can lead to. */
export type Targets = {
  /** Paths of all files, relative to the root. */
  readonly files: ReadonlySet<string>
  /** The same, and every path without its first folders: `domain/core/node.ts`, `node.ts`. Folders too, without a slash. */
  readonly endings: ReadonlySet<string>
  readonly rulings: ReadonlySet<string>
  /** The numbers that have an entry: R-004, T19, X5b, L10. */
  readonly numbers: ReadonlySet<string>
  /** Source documents (000) and their numbered sections (001 §10). */
  readonly sources: ReadonlySet<string>
  /** Anchors of every page. */
  readonly anchors: ReadonlyMap<string, ReadonlySet<string>>
}

/** `file:line: what is wrong` for every reference of the repository that leads nowhere. */
export const checkReferences = (root: string): string[] => {
  const all = filesBelow(root, root)
  const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')
  const texts = new Map(all.filter(isChecked).map((file) => [file, read(file)]))
  const targets = targetsIn(all, texts)
  return [...[...texts].flatMap(([file, text]) => brokenReferences(file, text, targets)), ...lostPages(texts)]
}

const isChecked = (file: string): boolean =>
  file !== ownTest &&
  (pages.includes(file) || folders.some((folder) => file.startsWith(`${folder}/`))) &&
  /\.(ts|md|sh|service)$/.test(file)

export const targetsIn = (files: readonly string[], texts: ReadonlyMap<string, string>): Targets => {
  const rulings = texts.get(rulingsPage) ?? ''
  const requirements = texts.get(requirementsPage) ?? ''
  return {
    files: new Set(files),
    endings: new Set(files.flatMap(endingsOf)),
    rulings: new Set(firstGroups(rulings, /^### Ruling (\d+): \S/gm)),
    numbers: new Set(firstGroups(requirements, /^(?:\| *|- \*\*)(R-\d{3}|[TXLRAP]\d{1,2}[bc]?)\b/gm)),
    sources: new Set(
      [...requirements.matchAll(/^- \*\*(\d{3})\*\*[^\n]*(?:\n .*)*/gm)].flatMap(([entry, source = '']) => [
        source,
        ...firstGroups(entry, /§(\d+)/g).map((section) => `${source} §${section}`),
      ]),
    ),
    anchors: new Map([...texts].filter(([file]) => isPage(file)).map(([file, text]) => [file, anchorsOf(text)])),
  }
}

/** Of `src/domain/core/node.ts`: itself, `domain/core/node.ts`, `node.ts`, `src/domain`, `domain` and `src`. */
const endingsOf = (file: string): string[] => {
  const parts = file.split('/')
  return parts.flatMap((_, end) => parts.slice(0, end + 1).map((_part, from) => parts.slice(from, end + 1).join('/')))
}

export const brokenReferences = (file: string, text: string, targets: Targets): string[] => {
  const prose = isPage(file) ? text : commentsOf(text)
  const found = [
    ...numbersIn(text).filter(({ name }) => !isNumbered(name, targets)),
    ...findingsIn(prose, text).filter(({ name }) => !targets.numbers.has(name)),
    ...sourcesIn(prose, text).filter(({ name }) => !targets.sources.has(name)),
    ...pathsIn(prose, text).filter(({ name }) => !isPath(name, file, targets)),
    ...(isPage(file) ? linksIn(text).filter(({ name }) => !isLink(name, file, targets)) : []),
  ]
  return [...new Set(found.map(({ name, line, kind }) => `${file}:${line}: ${kind} leads nowhere: ${name}`))]
}

type Reference = { readonly kind: string; readonly name: string; readonly line: number }

const isPage = (file: string): boolean => file.endsWith('.md')

/** `rulings 3, 4 and 23` are three references; a line may break inside. `002-7:` is compliance test 7 of document 002, T7. */
const numbersIn = (text: string): Reference[] => [
  ...[...text.matchAll(/\brulings?(?:\s|\/\/|\*)+(\d+(?:(?:,| and| to|\s|\/\/|\*)+\d+)*)/gi)].flatMap(
    ({ 1: list = '', index }) =>
      [...list.matchAll(/\d+/g)].map(([number]) => ({
        kind: 'ruling',
        name: `ruling ${number}`,
        line: lineOf(text, index),
      })),
  ),
  ...references(text, /\b(R-\d{3}|T\d{1,2}|X\d{1,2}[bc]?)\b/g, 'requirement'),
  ...references(text, /\b002-(\d{1,2}):/g, 'requirement').map((test) => ({ ...test, name: `T${test.name}` })),
]

const isNumbered = (name: string, { rulings, numbers }: Targets): boolean =>
  name.startsWith('ruling ') ? rulings.has(name.slice('ruling '.length)) : numbers.has(name)

/** Findings are named in comments and documents, and at the beginning of a test's name; elsewhere `A1` is some id. */
const findingsIn = (prose: string, text: string): Reference[] => [
  ...references(prose, /(?<![\w.-])([ALRP]\d{1,2})(?=[:,)]| and |$)/gm, 'finding'),
  ...[...text.matchAll(/\b(?:test|describe)\(['`]((?:[A-Z][-\d]+,? )*[ALRP]\d{1,2}):/g)].flatMap(
    ({ 1: list = '', index }) =>
      firstGroups(list, /\b([ALRP]\d{1,2})\b/g).map((name) => ({
        kind: 'finding',
        name,
        line: lineOf(text, index),
      })),
  ),
]

/** `seed 002`, `003's`, `(003)`, `001 §10`. A number inside a name is none, and RFCs have four digits. */
const sourcesIn = (prose: string, text: string): Reference[] =>
  [
    ...references(text, /\b[Ss]eed (\d{3})\b/g, 'source document'),
    ...references(prose, /(?<![\w.,:/#§+-])(00\d)(?![.,:/-]?\w)/g, 'source document'),
    ...references(prose, /\b((?:\d{3}|[A-Z]{4,}(?:\.md)?),? §\d+)/g, 'section'),
  ].map((reference) => ({ ...reference, name: reference.name.replace(', ', ' ') }))

/** Files named in prose, by their whole path or the end of it; documents also in messages for users. */
const pathsIn = (prose: string, text: string): Reference[] => {
  const withoutLinks = prose.replace(/\]\([^)\n]*\)|https?:\/\/[^\s)>`]*/g, '')
  return [
    ...references(
      withoutLinks,
      /(?<![\w@{}*./-])((?:[\w-]+\/|\.\.?\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|md))\b(?![\w*{])/g,
      'path',
    ),
    ...references(
      withoutLinks,
      /(?<![\w@{}*./-])((?:src|test|scripts|bench|packaging)\/[\w@./-]*\w)(?![\w*{/.-])/g,
      'path',
    ),
    ...references(text, /(?<![\w./-])(docs\/[\w/-]+\.md(?:#[\w-]+)?)/g, 'path'),
  ]
}

/** A path stands for itself, for the end of one, or is relative to its own file. Capitals are placeholders: `bench/NAME.ts`. */
const isPath = (name: string, file: string, targets: Targets): boolean => {
  const [target = '', anchor] = name.split('#')
  if (anchor !== undefined) return targets.anchors.get(target)?.has(anchor) === true
  return (
    /(^|\/)[A-Z]+(\.ts|\/)/.test(target) ||
    targets.endings.has(target) ||
    targets.endings.has(path.posix.join(path.posix.dirname(file), target))
  )
}

const linksIn = (text: string): Reference[] =>
  references(withoutCode(text), /\]\((?!https?:|mailto:)([^)\s]+)\)/g, 'link')

/** Pages of docs/ that a reader who begins at its first page, and follows links, does not come to. A link to a folder is one to its README. */
export const lostPages = (texts: ReadonlyMap<string, string>): string[] => {
  const isDocument = (file: string): boolean => isPage(file) && file.startsWith('docs/')
  const found = new Set([firstPage])
  for (const file of found) {
    for (const { name } of linksIn(texts.get(file) ?? '')) {
      const target = path.posix.join(path.posix.dirname(file), name.replace(/#.*$/, ''))
      for (const page of [target, path.posix.join(target, 'README.md')])
        if (texts.has(page) && isDocument(page)) found.add(page)
    }
  }
  return [...texts.keys()]
    .filter((file) => isDocument(file) && !found.has(file))
    .map((file) => `${file}: no link leads to it`)
}

const isLink = (name: string, file: string, targets: Targets): boolean => {
  const [target = '', anchor] = name.split('#')
  const page = target === '' ? file : path.posix.join(path.posix.dirname(file), target).replace(/\/$/, '')
  if (anchor !== undefined) return targets.anchors.get(page)?.has(anchor) === true
  return targets.files.has(page) || [...targets.files].some((one) => one.startsWith(`${page}/`))
}

/** As GitHub makes them: lower case, punctuation dropped, spaces to dashes, a number for one that is there already. */
const anchorsOf = (text: string): ReadonlySet<string> => {
  const anchors = new Set<string>()
  for (const title of firstGroups(withoutCode(text), /^#{1,6} +(.+?) *$/gm)) {
    const anchor = title
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/ /g, '-')
    let name = anchor
    for (let more = 1; anchors.has(name); more += 1) name = `${anchor}-${more}`
    anchors.add(name)
  }
  return anchors
}

/** Everything but comments is left out; lines keep their numbers. */
const commentsOf = (text: string): string => {
  let within = false
  return text
    .split('\n')
    .map((line) => {
      const starts = /^\s*(\/\/|\/\*|#)/.test(line)
      const comment = within || starts ? line : trailingComment(line)
      within = (within || /^\s*\/\*/.test(line)) && !line.includes('*/')
      return comment
    })
    .join('\n')
}

const trailingComment = (line: string): string => {
  if (!line.includes(' //') && !line.includes(' /*')) return ''
  const at = line.search(/\s\/\/\s(?=[^'"`]*$)|\s\/\*\*?\s(?=[^'"`]*\*\/)/)
  return at < 0 ? '' : line.slice(at)
}

/** Without fenced blocks; lines keep their numbers. */
const withoutCode = (text: string): string => text.replace(/^```[^]*?^```/gm, (block) => block.replace(/[^\n]/g, ''))

const references = (text: string, shape: RegExp, kind: string): Reference[] =>
  [...text.matchAll(shape)].map(({ 1: name = '', index }) => ({ kind, name, line: lineOf(text, index) }))

const firstGroups = (text: string, shape: RegExp): string[] => [...text.matchAll(shape)].map(([, name = '']) => name)

const lineOf = (text: string, at: number): number => text.slice(0, at).split('\n').length
