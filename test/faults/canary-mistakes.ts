// Secrets on the command line, in files and variables where another thing is expected: every one of these commands fails,
// and says so without repeating what it was given.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { inParallel } from '#cli/kit/in-parallel.ts'
import { generateKey } from '#pki/keys.ts'
import { within } from '../process/eventually.ts'
import { startLocalTlsServer } from '../process/local-tls-server.ts'
import type { World } from './canary-world.ts'

type Mistake = { readonly args: readonly string[]; readonly env?: Record<string, string>; readonly input?: string }

export const makeMistakes = async (world: World): Promise<void> => {
  const mistakes = [...typedWrong(world), ...wrongFiles(world), ...damagedFolders(world)]
  await inParallel(mistakes, 3, async ({ args, ...options }) => {
    const { code } = await world.muster(args, options)
    assert.notEqual(code, 0, `muster ${args.join(' ')}`)
  })
}

const json = ['-o', 'json'] as const

const typedWrong = ({ ledger }: World): readonly Mistake[] => [
  { args: [ledger.misplaced('a command')] },
  { args: ['node', ledger.misplaced('a verb'), ...json] },
  { args: ['node', 'show', ledger.misplaced('a node in an argument'), ...json] },
  { args: ['node', 'list', `--${ledger.misplaced('an option')}`, ...json] },
  { args: ['plane', '--domain', ledger.misplaced('a domain')] },
]

const wrongFiles = (world: World): readonly Mistake[] => {
  const { ledger, at, put } = world
  const malformed = (where: string): string =>
    `muster1,https://localhost:1,muster.local,sha256:${'0'.repeat(64)},${ledger.shapeless(where)}\n`
  const key = generateKey('p256').pkcs8Pem()
  ledger.learn('out of place', 'a key instead of a key file', key)
  const files = {
    join: put('planted/join', malformed('a join file')),
    key: put('planted/private.pem', key),
    roots: put('planted/ca.pem', ledger.shapeless('a file of roots')),
    seal: put('planted/seal.key', ledger.shapeless('no sealing key')),
    bundle: put('planted/repair.json', garbage(world)),
    certificate: put('planted/intermediate.pem', ledger.shapeless('no certificate')),
  }
  const run = ['agent', 'run', '--state', at('agents/malformed')] as const
  return [
    { args: [...run, '--join-file', '-'], input: malformed('standard input') },
    { args: run, env: { MUSTER_JOIN: malformed('MUSTER_JOIN').trim() } },
    { args: [...run, '--join-file', files.join, ...json] },
    { args: ['--key-file', files.key, 'node', 'list'] },
    { args: ['--ca', files.roots, '--url', 'https://localhost:1', 'node', 'list'] },
    { args: ['plane', '--data', at('no-data'), '--seal-key', files.seal] },
    { args: ['agent', 'repair', '--state', at('agents/env-1'), '--bundle-file', files.bundle, ...json] },
    { args: ['ca', 'import', files.certificate, ...json] },
  ]
}

const garbage = ({ ledger }: World): string =>
  JSON.stringify({ kind: 'muster-repair-bundle-1', recovery_token: ledger.misplaced('a bundle of nonsense', 'repair') })

const damagedFolders = (world: World): readonly Mistake[] => {
  const { at, put } = world
  const identity = fs.readFileSync(at('agents/env-1/identity.json'), 'utf8')
  put('damaged/identity.json', identity.slice(0, -20))
  // What was sealed with one key is opened with another.
  fs.cpSync(at('data/keys'), at('resealed/keys'), { recursive: true })
  fs.chmodSync(at('resealed'), 0o700)
  const wrong = put('etc/wrong-seal.key', `${'0'.repeat(64)}\n`)
  return [
    { args: ['agent', 'run', '--state', at('damaged'), '--log-level', 'trace'] },
    { args: ['plane', '--data', at('resealed'), '--seal-key', wrong, '--log-level', 'trace', ...json] },
  ]
}

/** A server that is not the plane of the join string gets nothing of it. */
export const meetAnImpostor = async (world: World): Promise<void> => {
  const impostor = await startLocalTlsServer(world.t)
  let called = 0
  impostor.server.on('connection', () => called++)
  impostor.server.on('secureConnection', (socket) => {
    socket.on('data', (bytes: Buffer) => world.evidence.keep('what an impostor received', bytes))
  })
  const join = await world.invite('fooled')
  const { port } = new URL(world.plane().nodeUrl)
  const agent = world.startAgent('fooled', { join: join.replace(`:${port}`, `:${impostor.port}`) })
  await within('the agent to turn away', 30_000, agent.ended)
  assert.ok(called > 0)
}
