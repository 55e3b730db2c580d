// Makes the real peers available where that is possible (packages: root on Debian; what is built: Go), and says in one line what is not.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { builtPeer, isBuilt, type BuiltPeer } from '../test/peers/built-peer.ts'
import { go, packageOf, peer, peerNames, peersOfTheLongRun, type PeerName } from '../test/peers/peer.ts'
import { runCommand } from './run-command.ts'

const missingPeers = (long: boolean): PeerName[] =>
  peerNames.filter((name) => (long || !peersOfTheLongRun.has(name)) && 'missing' in peer(name))

export type PeersAtHand = {
  /** Whether a file asks for a peer that is still being built. */
  isAwaited(file: string): boolean
  /** Once all are built that can be. False when a peer is missing where all have to be there (CI). */
  readonly complete: Promise<boolean>
}

/** Packages are there when this resolves. What is built comes beside the tests: on a machine that has none of it, that takes minutes. */
export const installPeers = async (root: string, testFiles: readonly string[], long: boolean): Promise<PeersAtHand> => {
  const packages = missingPeers(long).flatMap((name) => packageOf[name]?.split(' ') ?? [])
  if (packages.length > 0 && mayInstall()) await install(packages)
  const asking = (names: readonly PeerName[]): readonly string[] =>
    testFiles.filter((file) => asksFor(fs.readFileSync(path.join(root, file), 'utf8'), names))
  const awaited = new Map<BuiltPeer, ReadonlySet<string>>()
  if ('path' in go())
    for (const name of missingPeers(long).filter(isBuilt)) {
      const files = asking([name])
      if (files.length > 0) awaited.set(name, new Set(files))
    }
  const complete = async (): Promise<boolean> => {
    // One after the other: each uses every processor.
    for (const name of [...awaited.keys()]) {
      await build(name)
      awaited.delete(name)
    }
    return hasAll(missingPeers(long), asking)
  }
  return {
    isAwaited: (file) => awaited.values().some((files) => files.has(file)),
    complete: complete(),
  }
}

const hasAll = (missing: readonly PeerName[], asking: (names: readonly PeerName[]) => readonly string[]): boolean => {
  if (missing.length === 0) return true
  const skipped = asking(missing)
  console.log(
    `missing: ${missing.join(', ')}; ${skipped.length === 0 ? 'no test needs them' : `skipped: ${skipped.join(', ')}`}`,
  )
  return process.env['CI'] !== '1' || skipped.length === 0
}

/** One that is needed now; false: it is not here, and could not be brought. */
export const installPeer = async (name: PeerName): Promise<boolean> => {
  const wanted = packageOf[name]
  if ('missing' in peer(name) && wanted !== undefined && mayInstall()) await install(wanted.split(' '))
  return 'path' in peer(name)
}

const build = async (name: BuiltPeer): Promise<void> => {
  try {
    await builtPeer(name)
  } catch (error) {
    console.log(`${name} could not be built: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const mayInstall = (): boolean => process.getuid?.() === 0 && fs.existsSync('/etc/debian_version')

const asksFor = (text: string, missing: readonly PeerName[]): boolean =>
  missing.some((name) => new RegExp(`\\b(withPeer|peer)\\([^)]*'${name}'`).test(text))

const install = async (packages: readonly string[]): Promise<void> => {
  console.log(`installing ${packages.join(' ')}`)
  const environment = ['DEBIAN_FRONTEND=noninteractive', 'apt-get', '-qq']
  const updated = await runCommand('env', [...environment, 'update'], '/')
  const installed = await runCommand(
    'env',
    [...environment, 'install', '-y', '--no-install-recommends', ...packages],
    '/',
  )
  // Without a network the tests that can run still should: what is absent is said afterwards, in one place.
  if (installed.code !== 0) console.log(`apt-get failed:\n${updated.output}${installed.output}`.trimEnd())
}
