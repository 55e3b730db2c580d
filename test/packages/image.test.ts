// The OCI image of the plane (npm run build:image): its layout as the specification asks for it, and, in the long run, unpacked and started in
// namespaces until /readyz answers.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import * as http from 'node:http'
import * as path from 'node:path'
import { test } from 'node:test'
import { buildImage, imageUser } from '../../scripts/build-image.ts'
import { buildExecutable } from '../../scripts/build.ts'
import { ociArchive } from '../../scripts/oci-layout.ts'
import { tarArchive, type TarEntry } from '../../scripts/tar-archive.ts'
import { withPeer } from '../peers/peer.ts'
import { startChild } from '../process/child.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { tempFolder } from '../process/temp-folder.ts'

const longName = `${'folder/'.repeat(20)}file`

const entries: readonly TarEntry[] = [
  { kind: 'folder', name: 'data', mode: 0o700, owner: imageUser },
  { kind: 'file', name: 'data/text', mode: 0o640, content: Buffer.from('some text\n') },
  { kind: 'link', name: 'link', mode: 0o777, to: 'data/text' },
  { kind: 'file', name: longName, mode: 0o755, content: Buffer.alloc(512, 'x') },
]

test('tar reads an archive with its modes, owners, links and long names', (t) => {
  const file = path.join(tempFolder(t), 'archive.tar')
  fs.writeFileSync(file, tarArchive(entries, 1_700_000_000))
  const listed = execFileSync('tar', ['--numeric-owner', '-tvf', file], {
    encoding: 'utf8',
    env: { ...process.env, TZ: 'UTC' },
  })
  const columns = listed
    .trim()
    .split('\n')
    .map((line) => line.split(/\s+/))
  assert.deepEqual(
    columns.map(([mode, owner, size, , , ...name]) => [mode, owner, size, name.join(' ')]),
    [
      ['drwx------', `${imageUser}/${imageUser}`, '0', 'data/'],
      ['-rw-r-----', '0/0', '10', 'data/text'],
      ['lrwxrwxrwx', '0/0', '0', 'link -> data/text'],
      ['-rwxr-xr-x', '0/0', '512', longName],
    ],
  )
})

type Descriptor = { readonly digest: string; readonly size: number }
type Named = Descriptor & { readonly annotations: { readonly 'io.containerd.image.name': string } }
type Config = {
  readonly config: {
    readonly Env: readonly string[]
    readonly Entrypoint: readonly string[]
    readonly Cmd: readonly string[]
    readonly User: string
  }
  readonly rootfs: { readonly diff_ids: readonly string[] }
}

/** Everything that index.json leads to, checked by its digest. The layers are unpacked into `root`. */
const unpackImage = (
  archive: string,
  t: Scope,
): { readonly root: string; readonly name: string; readonly config: Config; readonly layers: number } => {
  const folder = tempFolder(t)
  const root = path.join(folder, 'root')
  fs.mkdirSync(root)
  execFileSync('tar', ['-xf', archive, '-C', folder])
  const blob = ({ digest, size }: Descriptor): Buffer => {
    const content = fs.readFileSync(path.join(folder, 'blobs', digest.replace(':', '/')))
    assert.equal(`sha256:${createHash('sha256').update(content).digest('hex')}`, digest)
    assert.equal(content.length, size)
    return content
  }
  const json = <T>(content: Buffer): T => JSON.parse(content.toString()) as T
  assert.deepEqual(json(fs.readFileSync(path.join(folder, 'oci-layout'))), { imageLayoutVersion: '1.0.0' })
  const index = json<{ manifests: readonly Named[] }>(fs.readFileSync(path.join(folder, 'index.json')))
  const [only] = index.manifests
  assert.ok(only !== undefined && index.manifests.length === 1)
  const manifest = json<{ config: Descriptor; layers: readonly Descriptor[] }>(blob(only))
  const config = json<Config>(blob(manifest.config))
  const diffIds = manifest.layers.map((layer) => {
    const archived = execFileSync('gzip', ['-dc'], { input: blob(layer), maxBuffer: 2 ** 30 })
    execFileSync('tar', ['--numeric-owner', '-xpf', '-', '-C', root], { input: archived })
    return `sha256:${createHash('sha256').update(archived).digest('hex')}`
  })
  assert.deepEqual(config.rootfs.diff_ids, diffIds)
  return { root, name: only.annotations['io.containerd.image.name'], config, layers: diffIds.length }
}

test('an image is an OCI layout in which everything is found by its digest, and the same parts make the same image', (t) => {
  const parts = {
    architecture: 'amd64',
    name: 'localhost/muster',
    tag: '1.2.3',
    layers: [{ about: 'the only layer', entries }],
    run: { Entrypoint: ['/usr/bin/muster'], Env: [], Cmd: [], User: '1:1' },
    annotations: {},
  } as const
  const { archive, digest } = ociArchive(parts, 1_700_000_000)
  assert.equal(ociArchive(parts, 1_700_000_000).digest, digest)
  const file = path.join(tempFolder(t), 'image.tar')
  fs.writeFileSync(file, archive)
  const { root, name, config, layers } = unpackImage(file, t)
  assert.equal(layers, 1)
  // podman and containerd load it under this name, by which docs/INSTALL.md runs it.
  assert.equal(name, 'localhost/muster:1.2.3')
  assert.deepEqual(config.config.Entrypoint, ['/usr/bin/muster'])
  assert.equal(fs.readFileSync(path.join(root, 'link'), 'utf8'), 'some text\n')
})

/** $1: the unpacked image, $2: a sealing key, $3: its owner; then environment and command. The image is the folder that it is started in. */
const container = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mkdir -p proc dev
mount -t proc proc proc
mount -t tmpfs -o mode=0755 tmpfs dev
for one in null zero full random urandom; do : > "dev/$one"; mount --bind "/dev/$one" "dev/$one"; done
mount -t tmpfs -o mode=0755 tmpfs run
mkdir run/secrets
cp "$2" run/secrets/muster-seal-key
chown "$3" run/secrets/muster-seal-key
chmod 0400 run/secrets/muster-seal-key
ip link set lo up
shift 3
# The first process of the namespace stays one of root: another would lose the signal that ends it with this test.
env -i "$@"
exit $?
`

/** It builds the executable and unpacks packages of Debian: minutes. */
const skip = process.env['MUSTER_LONG'] === '1' && process.arch === 'x64' ? false : 'only in the long run, on x64'

test(
  'the image of the plane holds no shell, starts as its user with a key that it was given, and is ready',
  { skip },
  async (t) => {
    for (const name of ['tmpfs', 'unshare', 'ip', 'dpkg-deb'] as const) if (withPeer(t, name) === null) return
    const out = tempFolder(t)
    const { file: executable } = await buildExecutable('x64', out)
    const first = buildImage({ arch: 'x64', executable, out })
    assert.equal(buildImage({ arch: 'x64', executable, out }).digest, first.digest, 'the same twice')
    const { root, config } = unpackImage(first.file, t)
    for (const place of ['bin/sh', 'usr/bin/sh', 'usr/bin/apt', 'usr/bin/dpkg'])
      assert.ok(!fs.existsSync(path.join(root, place)), place)
    assert.equal(fs.statSync(path.join(root, 'var/lib/muster')).uid, imageUser)

    const key = path.join(out, 'seal.key')
    fs.writeFileSync(key, randomBytes(32).toString('hex') + '\n', { mode: 0o600 })
    const { User, Env, Entrypoint, Cmd } = config.config
    const env = {
      ...Object.fromEntries(Env.map((line) => line.split('='))),
      MUSTER_SERVER_NAME: 'plane.example.org',
    } as Record<string, string>
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    // Its own files and its own user: nothing else is there for it to use.
    const inContainer = [...variables, '/usr/sbin/chroot', `--userspec=${User}`, '.', ...Entrypoint, ...Cmd]
    const plane = startChild(t, 'sh', ['-c', container, 'sh', root, key, User, ...inContainer], {
      wrapper: ['unshare', '--mount', '--net', '--ipc', '--uts', '--pid', '--fork', '--kill-child'],
    })
    const socketPath = path.join(root, 'var/lib/muster/run/operator.sock')
    const ready = await eventually(
      '/readyz to answer',
      async () => {
        if (!plane.running()) throw new Error(plane.stdout() + plane.stderr())
        return (await statusOf(socketPath, '/readyz')) === 200
      },
      { withinMs: 60_000 },
    )
    assert.ok(ready)
    assert.doesNotMatch(plane.stdout() + plane.stderr(), /protects nothing/)
    await plane.kill9()
  },
)

const statusOf = (socketPath: string, place: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    http
      .get({ socketPath, path: place }, (reply) => {
        reply.resume()
        resolve(reply.statusCode)
      })
      .on('error', reject)
  })
