// What is in an executable, as CycloneDX. It has no time and no random number: the same sources make the same bytes.

import packageJson from '../package.json' with { type: 'json' }
import type { BundledPackage } from './build-parts.ts'
import { digestOf, locked, type NodeBinary } from './node-binary.ts'

type Contents = {
  readonly name: string
  readonly sha256: string
  readonly node: NodeBinary
  readonly packages: readonly BundledPackage[]
}

export const sbom = ({ name, sha256, node, packages }: Contents): string => {
  const components = [
    { ...component({ type: 'platform', ...node, name: node.package, license: 'MIT' }), cpe: cpeOfNode(node.version) },
    ...packages.map((one) => {
      const { version, integrity } = locked(one.folder)
      if (version !== one.version) throw new Error(`${one.folder} is not the one that package-lock.json names: npm ci`)
      return component({ type: 'library', ...one, integrity })
    }),
  ]
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': name,
        name,
        version: packageJson.version,
        licenses: [{ license: { id: packageJson.license } }],
        hashes: [{ alg: 'SHA-256', content: sha256 }],
      },
    },
    components: [...components, ...librariesOf(node)],
    dependencies: [{ ref: name, dependsOn: components.map((one) => one['bom-ref']) }],
  }
  return JSON.stringify(document, null, 2) + '\n'
}

/** By this, scanners find what is known to be wrong with it: they do not know the npm package that it came in. */
const cpeOfNode = (version: string): string => `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`

/** What Node names as its parts and is a version of something else: numbers of interfaces and of data are not. */
const noLibraries = ['node', 'modules', 'napi', 'unicode', 'cldr', 'tz']

/** Inside Node's binary, as the release itself names them, which is the one that this runs on. */
const librariesOf = ({ version }: NodeBinary) => {
  if (process.version !== `v${version}`)
    throw new Error(`this runs on ${process.version}, not on the pinned ${version}`)
  return Object.entries(process.versions)
    .filter(([name, found]) => !noLibraries.includes(name) && found !== undefined && found !== '')
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, found]) => ({ type: 'library', 'bom-ref': `node/${name}`, name, version: found, group: 'node' }))
}

type Component = {
  readonly type: 'library' | 'platform'
  readonly name: string
  readonly version: string
  readonly license: string
  readonly integrity: string
}

const component = ({ type, name, version, license, integrity }: Component) => {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return {
    type,
    'bom-ref': purl,
    name,
    version,
    licenses: [{ license: { id: license } }],
    purl,
    hashes: [{ alg: 'SHA-512', content: digestOf(integrity).toString('hex') }],
  }
}
