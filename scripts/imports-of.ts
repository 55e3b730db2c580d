// The imports of a TypeScript file, as far as boundaries care: what is named, from where, and whether only as types.

import { isBuiltin } from 'node:module'
import * as path from 'node:path'

export type Import = {
  readonly line: number
  /** A path in the repository (`src/domain/core/node.ts`), `node:fs`, or a package. */
  readonly from: string
  /** Null: everything (`* as x`, a default import, a side effect, a dynamic import). */
  readonly names: readonly string[] | null
  readonly typesOnly: boolean
}

const statement =
  /\b(import|export)\s+(type\s+)?((?:[\w$]+\s*,\s*)?(?:\{[^}]*\}|\*(?:\s+as\s+[\w$]+)?)|[\w$]+)\s+from\s*(['"])([^'"\n]+)\4/g
const sideEffect = /\bimport\s*(['"])([^'"\n]+)\1/g
const dynamic = /\b(?:import|require)\s*\(\s*(['"`])([^'"`\n]+)\1/g
const loader = /\b(?:import|require)\s*\(\s*(?!['"`])[^\s)]|process\s*\.\s*getBuiltinModule|\bcreateRequire\b/g

export const importsOf = (file: string, text: string): Import[] => {
  const code = withoutComments(text)
  const found: Import[] = []
  for (const match of code.matchAll(statement)) {
    const [, , type, clause, , specifier] = match
    if (clause === undefined || specifier === undefined) continue
    const names = namesIn(clause)
    const typesOnly = type !== undefined || (names !== null && names.length > 0 && names.every((name) => name.type))
    found.push({
      line: lineAt(code, match.index),
      from: resolve(file, specifier),
      names: names === null ? null : names.map((name) => name.name),
      typesOnly,
    })
  }
  for (const match of code.matchAll(sideEffect)) found.push(whole(file, code, match.index, match[2] ?? ''))
  for (const match of code.matchAll(dynamic)) {
    // `import('typebox').TSchema` in a type position cannot be told from a call by text; either is an import.
    found.push(whole(file, code, match.index, match[2] ?? ''))
  }
  return found
}

/** Lines that load a module whose name no checker can read. */
export const unreadableImports = (text: string): number[] => {
  const code = withoutComments(text)
  return [...code.matchAll(loader)].map((match) => lineAt(code, match.index))
}

/** The same length and lines, comments blanked. Strings are kept: they name modules. */
export const withoutComments = (text: string): string =>
  text.replace(
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\/\*[^]*?\*\/|(^|[^:\\/])\/\/[^\n]*/g,
    (token, before?: string) =>
      token.startsWith("'") || token.startsWith('"')
        ? token
        : (before ?? '') + token.slice((before ?? '').length).replace(/[^\n]/g, ' '),
  )

const namesIn = (clause: string): { name: string; type: boolean }[] | null => {
  const braces = /^\{([^}]*)\}$/.exec(clause.trim())
  if (braces === null) return null
  return (braces[1] ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => ({ name: part.replace(/^type\s+/, '').split(/\s+as\s+/)[0] ?? '', type: /^type\s/.test(part) }))
}

const whole = (file: string, code: string, at: number, specifier: string): Import => ({
  line: lineAt(code, at),
  from: resolve(file, specifier),
  names: null,
  typesOnly: false,
})

const resolve = (file: string, specifier: string): string => {
  if (specifier.startsWith('#')) return `src/${specifier.slice(1)}`
  if (specifier.startsWith('.')) return path.posix.join(path.posix.dirname(file), specifier)
  return isBuiltin(specifier) && !specifier.startsWith('node:') ? `node:${specifier}` : specifier
}

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length
