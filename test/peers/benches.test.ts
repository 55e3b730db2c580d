// The benches that need other people's programs, with one identity from each: a bench that nobody has run for a while must still run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repository, startChild } from '../process/child.ts'
import { eventually } from '../process/eventually.ts'
import { go, suiteWith, withPeer } from './peer.ts'
import { isPeersRun } from './run-of-peers.ts'

/** Each waits until its servers are idle, and builds its client where there is none. */
const withinMs = 600_000

const figureOf = (name: string): RegExp => new RegExp(`^${name} +(\\d+|Infinity) enrollments a CPU second`, 'm')

const benches = [
  // One of them may cost less than the kernel counts: it is then without end a CPU second.
  { name: 'issuers', count: '--enrollments', says: ['built-in', 'step-ca', 'Vault'].map(figureOf) },
  {
    name: 'side-by-side',
    count: '--identities',
    says: [/an identity on a kept connection/, /^Muster to step-ca +on new /m, /^Muster to Vault +on kept /m],
  },
]

for (const { name, count, says } of benches) {
  const { skip } = isPeersRun ? suiteWith(go()) : { skip: 'only in the run with peers' }
  test(`bench ${name} measures one identity from each`, { skip }, async (t) => {
    if (withPeer(t, 'step-ca') === null || withPeer(t, 'vault') === null) return
    const asked = [count, '1', '--rounds', '1', '--warm-up', '1']
    const bench = startChild(t, process.execPath, ['scripts/bench.ts', name, ...asked], { cwd: repository })
    const printed = (): string => bench.stdout() + bench.stderr()
    await eventually('the bench to end', () => !bench.running(), { withinMs }).catch((error: unknown) => {
      throw new Error(printed(), { cause: error })
    })
    assert.equal((await bench.ended).code, 0, printed())
    for (const line of says) assert.match(bench.stdout(), line)
  })
}
