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
    component({ type: 'platform', ...node, name: node.package, license: 'MIT' }),
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
    components,
    dependencies: [{ ref: name, dependsOn: components.map((one) => one['bom-ref']) }],
  }
  return JSON.stringify(document, null, 2) + '\n'
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
