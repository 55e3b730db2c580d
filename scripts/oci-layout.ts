// An image as an OCI layout (https://github.com/opencontainers/image-spec): what `skopeo copy oci-archive:FILE` and `podman load` take.

import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { tarArchive, type TarEntry } from './tar-archive.ts'

export type OciImage = {
  readonly architecture: 'amd64' | 'arm64'
  /** What engines call it that load the archive: podman would take the tag alone for a name. */
  readonly name: string
  readonly tag: string
  /** The lower ones first. */
  readonly layers: readonly { readonly about: string; readonly entries: readonly TarEntry[] }[]
  /** How a container is run: the `config` of the specification. */
  readonly run: Readonly<Record<string, unknown>>
  readonly annotations: Readonly<Record<string, string>>
}

const mediaTypes = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const

type Blob = { readonly mediaType: string; readonly digest: string; readonly content: Buffer }

const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`

const blob = (kind: keyof typeof mediaTypes, content: Buffer): Blob => ({
  mediaType: mediaTypes[kind],
  digest: digestOf(content),
  content,
})

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value, null, 1) + '\n')

const descriptor = ({ mediaType, digest, content }: Blob) => ({ mediaType, digest, size: content.length })

/** The archive, and the digest of the manifest: what an image is referred to by. */
export const ociArchive = (image: OciImage, epoch: number): { readonly archive: Buffer; readonly digest: string } => {
  const created = new Date(epoch * 1000).toISOString()
  const layers = image.layers.map(({ about, entries }) => {
    const archive = tarArchive(entries, epoch)
    return { about, diffId: digestOf(archive), blob: blob('layer', gzipSync(archive)) }
  })
  const config = blob(
    'config',
    json({
      created,
      architecture: image.architecture,
      os: 'linux',
      config: image.run,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ about }) => ({ created, created_by: about })),
    }),
  )
  const manifest = blob(
    'manifest',
    json({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config: descriptor(config),
      layers: layers.map((layer) => descriptor(layer.blob)),
      annotations: { 'org.opencontainers.image.created': created, ...image.annotations },
    }),
  )
  const index = json({
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: [
      {
        ...descriptor(manifest),
        platform: { architecture: image.architecture, os: 'linux' },
        annotations: {
          'io.containerd.image.name': `${image.name}:${image.tag}`,
          'org.opencontainers.image.ref.name': image.tag,
        },
      },
    ],
  })
  const file = (name: string, content: Buffer): TarEntry => ({ kind: 'file', name, mode: 0o644, content })
  const folder = (name: string): TarEntry => ({ kind: 'folder', name, mode: 0o755 })
  const blobs = [config, manifest, ...layers.map((layer) => layer.blob)]
  const entries = [
    file('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
    file('index.json', index),
    folder('blobs'),
    folder('blobs/sha256'),
    ...blobs.map(({ digest, content }) => file(`blobs/${digest.replace(':', '/')}`, content)),
  ]
  return { archive: tarArchive(entries, epoch), digest: manifest.digest }
}
