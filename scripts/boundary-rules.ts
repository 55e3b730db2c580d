// Who may know whom (docs/ARCHITECTURE.md). Each rule looks at one file of the repository and returns what is wrong.
// test/boundaries.test.ts plants a violation of every one of them.

import * as path from 'node:path'
import { importsOf, unreadableImports, withoutComments, type Import } from './imports-of.ts'

type SourceFile = { readonly file: string; readonly text: string; readonly imports: readonly Import[] }
type Violation = { readonly line: number; readonly why: string }
type Rule = (source: SourceFile) => readonly Violation[]

export const violationsIn = (file: string, text: string): string[] => {
  const source = { file, text: withoutComments(text), imports: importsOf(file, text) }
  const found = rules.flatMap((rule) => rule(source))
  return found.map(({ line, why }) => `${file}:${line} ${why}`)
}

const isTest = (file: string): boolean => file.endsWith('.test.ts') || file.startsWith('test/')
const inSource = (file: string): boolean => file.startsWith('src/') || file.startsWith('bin/')

/** What a folder may import: a folder (ends in `/`), the files right in one (`/*`), a file, a package or a built-in; perhaps only some names. */
type Allowed = string | { readonly from: string; readonly names: readonly string[] }

const pureClock: Allowed = { from: 'src/platform/clock.ts', names: ['isoTime', 'parseIsoTime', 'Clock'] }
const secretShapes: Allowed = { from: 'src/platform/secret-shapes.ts', names: ['redactSecrets'] }

/** The pure folders: nothing but what is listed. */
const closedFolders: Readonly<Record<string, readonly Allowed[]>> = {
  'src/domain/': ['src/domain/', pureClock, secretShapes],
  'src/wire/': ['src/wire/', 'src/domain/', pureClock, secretShapes, 'typebox', 'typebox/'],
  'src/pki/': ['src/pki/', 'src/domain/', pureClock, 'src/platform/bytes.ts', 'node:crypto', 'node:buffer'],
}

/** The others: which parts of src they may know. Packages and harmless built-ins are free. */
const openFolders: Readonly<Record<string, readonly Allowed[]>> = {
  'src/platform/': ['src/platform/'],
  'src/plane/': ['src/plane/', 'src/domain/', 'src/wire/', 'src/pki/', 'src/platform/'],
  'src/agent/': ['src/agent/', 'src/domain/', 'src/wire/', 'src/pki/', 'src/platform/'],
  'src/cli/': [
    'src/cli/',
    'src/domain/',
    'src/wire/',
    'src/pki/',
    'src/platform/',
    'src/plane/*',
    'src/agent/*',
    // The ceremony and an exported journal are for machines on which no plane runs.
    'src/plane/issuer/sign-intermediate.ts',
    'src/plane/store/canonical-json.ts',
  ],
  'bin/': ['src/cli/', 'src/platform/'],
}

const allows = (allowed: readonly Allowed[], wanted: Import): boolean =>
  allowed.some((entry) => {
    if (typeof entry === 'string') return isWithin(wanted.from, entry)
    return (
      wanted.from === entry.from && wanted.names !== null && wanted.names.every((name) => entry.names.includes(name))
    )
  })

const isWithin = (file: string, place: string): boolean => {
  if (place.endsWith('/*')) return path.posix.dirname(file) === place.slice(0, -2)
  return place.endsWith('/') ? file.startsWith(place) : file === place
}

const folders: Rule = ({ file, imports }) => {
  const closed = Object.keys(closedFolders).find((folder) => file.startsWith(folder))
  const folder = closed ?? Object.keys(openFolders).find((name) => file.startsWith(name))
  if (folder === undefined) return []
  const allowed = closedFolders[folder] ?? openFolders[folder] ?? []
  return imports
    .filter(
      (wanted) =>
        (closed !== undefined && !isTest(file)) || wanted.from.startsWith('src/') || wanted.from.startsWith('bin/'),
    )
    .filter((wanted) => !allows(allowed, wanted))
    .map((wanted) => ({ line: wanted.line, why: `${folder} may not import ${named(wanted)}` }))
}

/** Code in src never imports tests, benchmarks or scripts; tests beside it may. */
const noTestCode: Rule = ({ file, imports }) =>
  inSource(file) && !isTest(file)
    ? imports
        .filter((wanted) => /^(test|bench|scripts)\//.test(wanted.from) || wanted.from.endsWith('.test.ts'))
        .map((wanted) => ({ line: wanted.line, why: `src may not import ${wanted.from}` }))
    : []

/** `views` are answers made of rows, `channels` the flows of an open connection, `metrics`, `claims` and `webhook` tell others. */
const requestOrder = [
  'listeners',
  'views',
  'authn',
  'metrics',
  'channels',
  'claims',
  'flows',
  'webhook',
  'issuer',
  'store',
  'feed',
]
/** Interfaces that any part of the plane may name. */
const planeSeams = new Set([
  'src/plane/store/store.ts',
  'src/plane/issuer/issuer.ts',
  'src/plane/issuer/authority.ts',
  'src/plane/feed/feed.ts',
])

const planeOrder: Rule = ({ file, imports }) => {
  const here = planeFolder(file)
  if (here === null || isTest(file)) return []
  if (!requestOrder.includes(here))
    return [{ line: 1, why: `src/plane/${here}/ has no place in the request order (scripts/boundary-rules.ts)` }]
  return imports.flatMap((wanted) => {
    if (/^src\/plane\/[^/]+$/.test(wanted.from)) {
      return wanted.from === 'src/plane/config.ts'
        ? []
        : [{ line: wanted.line, why: `src/plane/${here}/ may not import ${wanted.from}: it is started from there` }]
    }
    const there = planeFolder(wanted.from)
    if (there === null || requestOrder.indexOf(there) >= requestOrder.indexOf(here)) return []
    if (wanted.typesOnly && planeSeams.has(wanted.from)) return []
    return [
      {
        line: wanted.line,
        why: `src/plane/${here}/ may not import ${wanted.from}: the request order is ${requestOrder.join(' -> ')}`,
      },
    ]
  })
}

const planeFolder = (file: string): string | null => /^src\/plane\/([^/]+)\//.exec(file)?.[1] ?? null

const withEffects =
  /^node:(fs|net|tls|https?|http2|dns|dgram|child_process|sqlite|timers|worker_threads|cluster|perf_hooks|readline|repl|inspector)(\/.*)?$/

const effects: Rule = ({ file, imports }) => {
  if (!inSource(file) || isTest(file) || file.startsWith('src/platform/')) return []
  return imports
    .filter((wanted) => withEffects.test(wanted.from) && !wanted.typesOnly)
    .filter((wanted) => !(wanted.from === 'node:sqlite' && file.startsWith('src/plane/store/')))
    .filter((wanted) => !(wanted.from === 'node:net' && onlyAddressChecks(wanted)))
    .map((wanted) => ({ line: wanted.line, why: `${wanted.from} belongs to src/platform` }))
}

/** `isIP` and its like compute; everything else in node:net opens sockets. */
const onlyAddressChecks = (wanted: Import): boolean =>
  wanted.names !== null && wanted.names.every((name) => /^isIP(v[46])?$/.test(name))

const randomNames = /^(random\w*|webcrypto|getRandomValues|subtle)$/

const randomness: Rule = ({ file, imports }) => {
  if (!inSource(file) || isTest(file) || file.startsWith('src/platform/')) return []
  return imports
    .filter((wanted) => wanted.from === 'node:crypto' && !wanted.typesOnly)
    .filter((wanted) => wanted.names === null || wanted.names.some((name) => randomNames.test(name)))
    .map((wanted) => ({
      line: wanted.line,
      why: 'import from node:crypto by name, and randomness from src/platform/random.ts',
    }))
}

const ordersAreDecided: Rule = ({ file, text }) =>
  inSource(file) && !isTest(file) && !file.startsWith('src/domain/')
    ? linesWith(text, /\bplaceOrder\b/).map((line) => ({ line, why: 'only a decision in src/domain places an order' }))
    : []

/**
 * Where Node's own check of a certificate is replaced: the node listener wants a client certificate and judges it itself;
 * the agent's first contact knows only a fingerprint. src/platform carries their decision to Node and makes none.
 * Saying `true` is allowed anywhere: it beats the environment.
 */
const verifiesByItself: ReadonlySet<string> = new Set([
  'src/plane/listeners/node-listener.ts',
  'src/agent/enrollment/verified-connection.ts',
])

const verification: Rule = ({ file, text }) => {
  if (verifiesByItself.has(file) || aboutTheseRules.has(file)) return []
  const shape = file.startsWith('src/platform/')
    ? /rejectUnauthorized\W*\b(false|0)\b/
    : /rejectUnauthorized(?!: true\b)/
  return linesWith(text, shape).map((line) => ({
    line,
    why: `rejectUnauthorized belongs to ${[...verifiesByItself].join(' and ')}`,
  }))
}

const aboutTheseRules = new Set(['scripts/boundary-rules.ts', 'test/boundaries.test.ts'])

/** Turns the switch on, to show that the agent does not heed it. */
const testOfTheSwitch = 'test/flows/agent-hostile-plane.test.ts'

const noGlobalSwitch: Rule = ({ file, text }) =>
  aboutTheseRules.has(file) || file === testOfTheSwitch
    ? []
    : linesWith(text, /NODE_TLS_REJECT_UNAUTHORIZED/).map((line) => ({
        line,
        why: 'NODE_TLS_REJECT_UNAUTHORIZED turns verification off everywhere',
      }))

const unreadable: Rule = ({ file, text }) =>
  inSource(file) && !isTest(file)
    ? unreadableImports(text).map((line) => ({
        line,
        why: 'a module is loaded by a computed name, which no boundary can see',
      }))
    : []

const rules: readonly Rule[] = [
  folders,
  noTestCode,
  planeOrder,
  effects,
  randomness,
  ordersAreDecided,
  verification,
  noGlobalSwitch,
  unreadable,
]

const linesWith = (text: string, shape: RegExp): number[] =>
  text.split('\n').flatMap((line, index) => (shape.test(line) ? [index + 1] : []))

const named = (wanted: Import): string =>
  wanted.names === null || !wanted.from.startsWith('src/')
    ? wanted.from
    : `${wanted.names.join(', ')} from ${wanted.from}`
