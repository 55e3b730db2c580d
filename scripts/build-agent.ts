// `npm run build:agent [-- --pin FINGERPRINT] [--out FILE]`: the agent as one file that needs nothing but Node. With
// --pin it takes join strings of that root only. Prints the digest that `muster node bundle --format script` installs by.
// The same sources make the same bytes.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { parseArgs } from 'node:util'
import { build, type Plugin } from 'esbuild'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import packageJson from '../package.json' with { type: 'json' }
import { packagesOf } from './build-parts.ts'
import { root } from './repository.ts'
import { scriptLicenses } from './third-party-licenses.ts'

export type BuiltAgent = {
  readonly file: string
  readonly sha256: string
  readonly bytes: number
  /** `name version` of every package in it, sorted. */
  readonly dependencies: readonly string[]
}

export const dependencyList = path.join(root, 'packaging/agent/dependencies.txt')

const fingerprintShape = /^[0-9a-f]{64}$/

export const buildAgent = async (pin: string | null, out: string): Promise<BuiltAgent> => {
  if (pin !== null && !fingerprintShape.test(pin)) {
    throw new Error('--pin takes the SHA-256 of the root certificate, 64 hex digits: muster ca show')
  }
  const result = await build({
    absWorkingDir: root,
    entryPoints: ['bin/muster-agent.ts'],
    outfile: out,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: oldestReader,
    legalComments: 'inline',
    metafile: true,
    logLevel: 'warning',
    banner: { js: banner },
    plugins: pin === null ? [] : [bakeIn(pin)],
  })
  fs.writeFileSync(out, modulesOfNodeLater(fs.readFileSync(out, 'utf8')))
  const packages = packagesOf(Object.keys(result.metafile.inputs))
  // At the end, where no one has to read past them. No license ends a comment by itself.
  const licenses = scriptLicenses(packages.map(({ folder }) => folder))
  fs.appendFileSync(out, `/*\n${licenses.replaceAll('*/', '* /')}*/\n`)
  fs.chmodSync(out, 0o755)
  const content = fs.readFileSync(out)
  return {
    file: out,
    sha256: createHash('sha256').update(content).digest('hex'),
    bytes: content.length,
    dependencies: packages.map(({ name, version }) => `${name} ${version}`).sort(),
  }
}

/** A Node that is too old says so, in the one place that runs before it meets what it does not know. */
const oldestNode = Number(/\d+/.exec(packageJson.engines.node)?.[0])

/** Distributions have Nodes of ten years. From this one on they understand the file as far as to say that they are too old. */
const oldestReader = 'node14.18'

const endOfCheck = '// Modules of Node.'

/** Node resolves what a module imports before it runs a line of it, and an old one misses exports: the check would never be reached. */
const modulesOfNodeLater = (text: string): string => {
  const lines: string[] = []
  const rest = text.replace(
    /^import (?:\* as (\w+)|(\w+)|(\{.*\})) from "(node:[\w/]+)";\n/gm,
    (_, all: string | undefined, main: string | undefined, names: string | undefined, name: string) => {
      lines.push(`const ${all ?? main ?? names?.replaceAll(' as ', ': ')} = require("${name}");`)
      return ''
    },
  )
  return rest.replace(`${endOfCheck}\n`, () => `${endOfCheck}\n${lines.join('\n')}\n`)
}

// Packages written for CommonJS ask for Node's own modules by `require`, which a module does not have.
const banner = `import { createRequire as __createRequire } from 'node:module'
const require = __createRequire(import.meta.url)
if (Number(process.versions.node.split('.')[0]) < ${oldestNode}) {
  console.error('muster: this needs Node ${oldestNode} or newer, and runs on ' + process.version + '; the executable of a release needs none.')
  process.exit(${exitCodes.misconfigured})
}
${endOfCheck}`

const bakeIn = (pin: string): Plugin => ({
  name: 'pinned root',
  setup: (bundler) => {
    bundler.onLoad({ filter: /\/src\/agent\/core\/pinned-root\.ts$/ }, () => ({
      contents: `export const pinnedRoot = ${JSON.stringify(pin)}\n`,
      loader: 'ts',
    }))
  },
})

if (import.meta.main) {
  try {
    const { values } = parseArgs({ options: { pin: { type: 'string' }, out: { type: 'string' } } })
    const out = path.resolve(values.out ?? path.join(root, 'dist/muster-agent.mjs'))
    const built = await buildAgent(values.pin?.toLowerCase().replace(/^sha256:/, '') ?? null, out)
    fs.mkdirSync(path.dirname(dependencyList), { recursive: true })
    fs.writeFileSync(dependencyList, built.dependencies.join('\n') + '\n')
    console.log(`${path.relative(process.cwd(), built.file)}  ${Math.round(built.bytes / 1024)} KiB`)
    console.log(`sha256:${built.sha256}`)
    console.log(`${built.dependencies.length} packages, listed in ${path.relative(process.cwd(), dependencyList)}`)
    console.log(values.pin === undefined ? 'no root is baked in' : 'takes join strings of the pinned root only')
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}
