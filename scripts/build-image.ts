// `npm run build:image [-- --arch x64|arm64] [--out FOLDER]`: an OCI image of the plane, from Debian's libraries and the executable, without
// a shell or a package manager. The same sources and the same Debian packages make the same bytes.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { parseArgs } from 'node:util'
import { architectures, archOf, changelogEpoch, packageVersion, type Arch } from './build-deb.ts'
import { buildExecutable } from './build.ts'
import { debianLibraries } from './debian-libraries.ts'
import { ociArchive } from './oci-layout.ts'
import { root } from './repository.ts'
import { thirdPartyLicenses } from './third-party-licenses.ts'
import type { TarEntry } from './tar-archive.ts'

/** As other images without a root user have it. */
export const imageUser = 65_532

const data = '/var/lib/muster'

/** The plane has to be reached from outside of the container, and its key has to come from there. */
const environment = {
  PATH: '/usr/bin',
  MUSTER_DATA: data,
  MUSTER_NODE_LISTEN: '0.0.0.0:8443',
  MUSTER_RECOVERY_LISTEN: '0.0.0.0:8442',
  MUSTER_STATUS_LISTEN: '0.0.0.0:8446',
  MUSTER_SEAL_KEY: '/run/secrets/muster-seal-key',
}

const run = {
  User: `${imageUser}:${imageUser}`,
  ExposedPorts: { '8442/tcp': {}, '8443/tcp': {}, '8446/tcp': {} },
  Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
  Entrypoint: ['/usr/bin/muster'],
  Cmd: ['plane'],
  Volumes: { [data]: {} },
  WorkingDir: '/',
  StopSignal: 'SIGTERM',
}

const text = (name: string, ...lines: string[]): TarEntry => ({
  kind: 'file',
  name,
  mode: 0o644,
  content: Buffer.from(lines.map((line) => `${line}\n`).join('')),
})

const ownFiles = (executable: string): readonly TarEntry[] => [
  text(
    'etc/passwd',
    'root:x:0:0:root:/:/sbin/nologin',
    `muster:x:${imageUser}:${imageUser}:Muster plane:${data}:/sbin/nologin`,
  ),
  text('etc/group', 'root:x:0:', `muster:x:${imageUser}:`),
  text('etc/nsswitch.conf', 'passwd: files', 'group: files', 'hosts: files dns'),
  {
    kind: 'file',
    name: 'usr/share/doc/muster/copyright',
    mode: 0o644,
    content: fs.readFileSync(path.join(root, 'LICENSE')),
  },
  text('usr/share/doc/muster/third-party-licenses', thirdPartyLicenses()),
  { kind: 'folder', name: 'etc/muster', mode: 0o755 },
  { kind: 'folder', name: 'run', mode: 0o755 },
  { kind: 'folder', name: 'tmp', mode: 0o1777 },
  { kind: 'folder', name: data.slice(1), mode: 0o700, owner: imageUser },
  { kind: 'file', name: 'usr/bin/muster', mode: 0o755, content: fs.readFileSync(executable) },
]

/** Folders that are not among the entries, before what is in them. */
const withFolders = (entries: readonly TarEntry[]): TarEntry[] => {
  const known = new Set(entries.filter(({ kind }) => kind === 'folder').map(({ name }) => name))
  const missing = new Set<string>()
  for (const { name } of entries) {
    for (let folder = path.posix.dirname(name); folder !== '.'; folder = path.posix.dirname(folder)) {
      if (!known.has(folder)) missing.add(folder)
    }
  }
  const folders = [...missing].map((name): TarEntry => ({ kind: 'folder', name, mode: 0o755 }))
  return [...folders, ...entries].sort((one, other) => (one.name < other.name ? -1 : 1))
}

export type BuiltImage = {
  readonly file: string
  readonly digest: string
  readonly bytes: number
  readonly packages: readonly string[]
}

export const buildImage = (options: {
  readonly arch: Arch
  readonly executable: string
  readonly out: string
}): BuiltImage => {
  const { arch, executable, out } = options
  const version = packageVersion()
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-image-'))
  try {
    const { entries, packages } = debianLibraries(architectures[arch], scratch)
    const { archive, digest } = ociArchive(
      {
        architecture: architectures[arch],
        name: 'localhost/muster',
        tag: version,
        layers: [
          { about: `Debian: ${packages.join(' ')}`, entries: withFolders(entries) },
          { about: `Muster ${version}`, entries: withFolders(ownFiles(executable)) },
        ],
        run,
        annotations: {
          'org.opencontainers.image.title': 'Muster plane',
          'org.opencontainers.image.version': version,
          'org.opencontainers.image.licenses': 'Apache-2.0',
        },
      },
      Number(process.env['SOURCE_DATE_EPOCH'] ?? changelogEpoch()),
    )
    fs.mkdirSync(out, { recursive: true })
    const file = path.join(out, `muster-plane-${version}-linux-${architectures[arch]}.oci.tar`)
    fs.writeFileSync(file, archive)
    return { file, digest, bytes: archive.length, packages }
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  try {
    const { values } = parseArgs({ options: { arch: { type: 'string' }, out: { type: 'string' } } })
    const arch = archOf(values.arch)
    const out = path.resolve(values.out ?? path.join(root, 'dist'))
    const { file: executable } = await buildExecutable(arch, out)
    const { file, digest, bytes, packages } = buildImage({ arch, executable, out })
    console.log(`${path.relative(process.cwd(), file)}  ${Math.ceil(bytes / 1024)} KiB\n${digest}`)
    console.log(`from Debian: ${packages.join(' ')}`)
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}
