// `muster` as parts that are loaded when they are needed for the first time: by the executable (scripts/start-parts.ts) and by `./muster`.
// Node loads a module of the sources in a third of a millisecond, and a command has hundreds of them; in one file all of them would
// be parsed for each command.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { build, transform, type BuildOptions, type Metafile, type Plugin } from 'esbuild'
import { awaitingPrograms } from './awaiting-programs.ts'
import { root, threadFiles } from './repository.ts'

export type ChunkModule = { exports: object }

/** `folder` and `url` stand for those of the source. */
type Chunk = (
  exports: object,
  load: (name: string) => unknown,
  module: ChunkModule,
  folder: string,
  url: string,
) => void

/** What the script of a part evaluates to: its chunks, by name. */
export type Part = Readonly<Record<string, Chunk>>

export type Parts = {
  /** By file name. In ASCII. */
  readonly texts: ReadonlyMap<string, string>
  /** The part that a chunk is in; `muster.js` is the first chunk. */
  readonly partOf: Readonly<Record<string, string>>
  /** `tls-thread.js` and its like, which a plane starts threads with; by file name. */
  readonly threads: ReadonlyMap<string, string>
  readonly metafile: Metafile
}

const entry = 'bin/muster.ts'

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node24',
  charset: 'ascii',
  legalComments: 'none',
  logLevel: 'warning',
  external: ['pg-native'],
  // A package is named by its place in node_modules, wherever that is.
  preserveSymlinks: true,
  write: false,
} satisfies BuildOptions

export const buildParts = async (): Promise<Parts> => {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: [entry],
    outdir: 'dist',
    format: 'esm',
    splitting: true,
    metafile: true,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    plugins: [awaitingPrograms([path.join(root, entry)]), commanderWithoutPrograms, onlyUsedOfTypebox],
    define: { 'import.meta.url': '__moduleUrl', 'import.meta.dirname': '__dirname' },
  })
  const grouped = groupsOf(metafile)
  const chunks = new Map<string, string[]>()
  const partOf: Record<string, string> = {}
  for (const { path: file, text } of outputFiles.toSorted((one, other) => (one.path < other.path ? -1 : 1))) {
    const name = path.basename(file)
    const part = grouped.get(name) ?? name
    partOf[name] = part
    chunks.set(part, [...(chunks.get(part) ?? []), `${JSON.stringify(name)}: ${await asFunction(text)}`])
  }
  const texts = new Map([...chunks].map(([part, functions]) => [part, `({\n${functions.join(',\n')}\n})\n`]))
  return { texts, partOf, threads: await threadTexts(), metafile }
}

/** So many commands need a chunk that it is cheaper to read all such chunks at once: `node list` needs those of the first part alone. */
const partsByEntries = [
  { least: 18, part: 'most.js' },
  { least: 12, part: 'many.js' },
] as const

/** Every part costs a fifth of a millisecond: what each command needs is one part, and what most need another, and many a third. */
const groupsOf = ({ outputs }: Metafile): ReadonlyMap<string, string> => {
  const reachedFrom = (file: string, reached = new Set<string>()): Set<string> => {
    if (reached.has(file)) return reached
    reached.add(file)
    for (const { path: imported, kind } of outputs[file]?.imports ?? []) {
      if (kind === 'import-statement' && outputs[imported] !== undefined) reachedFrom(imported, reached)
    }
    return reached
  }
  const counts = new Map<string, number>()
  for (const [file, { entryPoint }] of Object.entries(outputs)) {
    if (entryPoint === undefined) continue
    for (const reached of reachedFrom(file)) counts.set(reached, (counts.get(reached) ?? 0) + 1)
  }
  const most = [...counts].flatMap(([file, count]) => {
    const group = partsByEntries.find(({ least }) => count >= least)
    return group === undefined ? [] : [[path.basename(file), group.part] as const]
  })
  const each = [...reachedFrom('dist/muster.js')].map((file) => [path.basename(file), 'each.js'] as const)
  return new Map([...most, ...each])
}

/** Commander can start a program for a subcommand. Muster has no such subcommand, and what starts programs takes milliseconds to load. */
const commanderWithoutPrograms: Plugin = {
  name: 'commander-without-programs',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('/node_modules/commander/') ? { path: 'none', namespace: 'no-programs' } : null,
    )
    onLoad({ filter: /.*/, namespace: 'no-programs' }, () => ({ contents: 'export default {}' }))
  },
}

/** What its own question says, so that the answer is not asked for again. */
const resolving = Symbol('resolving')

/**
 * Its package does not say that a module of it which nothing uses can be left out, and `Type` by its name is all of it: as a namespace it is
 * what is used of it.
 */
const onlyUsedOfTypebox: Plugin = {
  name: 'only-used-of-typebox',
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /^(typebox|\.)/ }, async ({ path: name, pluginData, ...from }) => {
      const isOfTypebox = name.startsWith('typebox') || from.importer.includes('/node_modules/typebox/')
      if (pluginData === resolving || !isOfTypebox) return null
      const found = await resolve(name, { ...from, pluginData: resolving })
      return { ...found, sideEffects: false }
    })
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path: file }) => {
      const text = fs.readFileSync(file, 'utf8')
      const contents = text.replace(/^import \{ Type(?:, (.*))? \} from 'typebox'$/m, (_, others: string | undefined) =>
        [
          "import * as Type from 'typebox'",
          ...(others === undefined ? [] : [`import { ${others} } from 'typebox'`]),
        ].join('; '),
      )
      return contents === text ? null : { contents, loader: 'ts' }
    })
  },
}

/** V8 keeps what it has compiled of a script, not of a module, and Node loads no modules from an executable. */
const asFunction = async (text: string): Promise<string> => {
  const { code } = await transform(text, {
    format: 'cjs',
    platform: 'node',
    target: common.target,
    charset: 'ascii',
    legalComments: 'none',
    supported: { 'dynamic-import': false },
  })
  // A script is not strict by itself.
  return `function (exports, require, module, __dirname, __moduleUrl) {"use strict";\n${lazy(withoutUnusedHelpers(direct(code)))}}`
}

/**
 * Without the copies that esbuild makes: of the exports of a part, which nothing but other parts reads, and of each module of Node for
 * each part that imports it, which was a third of the start of a command.
 */
const direct = (code: string): string => {
  // By the line that loads it: `node:assert/strict` is in a variable that is not named after Node.
  const builtins = /^var (\w+) = __toESM\((require\("node:[\w/]+"\))\);$/gm
  const names = [...code.matchAll(builtins)].map(([, name = '']) => name)
  return (
    code
      .replace(
        'var stdin_exports = {};',
        'var stdin_exports = Object.defineProperty(exports, "__esModule", { value: true });',
      )
      .replace('module.exports = __toCommonJS(stdin_exports);\n', '')
      // What is imported when it is needed is another part.
      .replaceAll(/__toESM\((require\("\.\/[\w.-]+"\))\)/g, '$1')
      .replaceAll(builtins, 'var $1 = $2;')
      // The default export of a module of Node is the module.
      .replaceAll(/\b(import_\w+)\.default\b/g, (text, name: string) => (names.includes(name) ? name : text))
  )
}

/** Those that use others come first. */
const helpers = [
  ...['__toCommonJS', '__toESM', '__copyProps', '__create', '__getProtoOf'],
  ...['__hasOwnProp', '__getOwnPropNames', '__getOwnPropDesc'],
]

/** Each part has the functions that esbuild needs for its exports, and most of them are needed no more. */
const withoutUnusedHelpers = (code: string): string =>
  helpers.reduce((text, name) => {
    if (text.split(name).length !== 2) return text
    // One line, or up to a closing bracket that is not indented.
    return text.replace(new RegExp(`^var ${name} = (?:[^\n]*;|[^\n]*[{(]\n(?:[ \t][^\n]*\n)*[})]+;)\n`, 'm'), '')
  }, code)

/** Modules of Node whose exports are imported by name are loaded when one of these is used for the first time. */
const lazy = (code: string): string => {
  let text = code
  for (const [line, name = '', builtin] of code.matchAll(/^var (import_\w+) = require\("([\w:/]+)"\);$/gm)) {
    const uses = new RegExp(`\\b${name}\\b(?! = require)`, 'g')
    // All of it may be handed on.
    if ([...text.matchAll(uses)].some(({ index }) => text[index + name.length] !== '.')) continue
    text = text
      // In brackets, for `new`.
      .replaceAll(uses, `(${name}())`)
      .replace(line, `var ${name}_loaded, ${name} = () => (${name}_loaded ??= require("${builtin}"));`)
  }
  return text
}

/** A thread loads one file. */
const threadTexts = async (): Promise<ReadonlyMap<string, string>> => {
  const { outputFiles } = await build({ ...common, entryPoints: [...threadFiles], outdir: 'dist', format: 'cjs' })
  return new Map(outputFiles.map(({ path: file, text }) => [path.basename(file), text]))
}

/** Sources that a process may load that starts with `entries`, by static import. */
export const loadedBy = (metafile: Metafile, entries: readonly string[]): ReadonlySet<string> => {
  const seen = new Set<string>()
  const waiting = [...entries]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    for (const { path: imported, kind } of metafile.inputs[file]?.imports ?? []) {
      if (kind !== 'dynamic-import') waiting.push(imported)
    }
  }
  return seen
}

export type BundledPackage = {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly folder: string
}

/** Every package in them, by its folder: there may be two versions of one. */
export const packagesOf = (inputs: readonly string[]): BundledPackage[] => {
  const folders = inputs.flatMap((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? [])
  return [...new Set(folders)].sort().map((folder) => {
    const manifest = JSON.parse(fs.readFileSync(path.join(root, folder, 'package.json'), 'utf8')) as BundledPackage
    return { name: manifest.name, version: manifest.version, license: manifest.license, folder }
  })
}
