// A host on which outputs are placed, whose publisher does as the test says, with a clock that only the test moves.

import { leafFrom, listsFrom } from '#agent/programs/check-answer.ts'
import { openLeafStore, withLeaf } from '#agent/programs/leaf-store.ts'
import { openListStore } from '#agent/programs/list-store.ts'
import { openPlacement } from '#agent/programs/placement.ts'
import { LeftBehind, type FoundOutput, type Place } from '#agent/programs/publisher.ts'
import { termsOf } from '#agent/programs/wanted-outputs.ts'
import type { Replaced } from '#platform/file-generations.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom } from '#platform/random.ts'
import { systemTimers } from '#platform/timers.ts'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import type { ConfigOutput } from '#wire/programs/programs-api.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { outputOf, programsAuthority } from './programs-authority.ts'

export const placingHost = (t: Scope, ...wanted: ConfigOutput[]) => placingHostIn(tempFolder(t), ...wanted)

/** `folder`: the state of an agent, perhaps of one that ran before. */
export const placingHostIn = (folder: string, ...wanted: ConfigOutput[]) => {
  const startMs = Date.now()
  let aheadMs = 0
  const clock = { nowMs: () => startMs + aheadMs, monotonicMs: () => aheadMs }
  const authority = programsAuthority(startMs)
  const leaves = openLeafStore(
    folder,
    () => true,
    (act) => act(),
  )
  const lists = openListStore(folder)
  const done: string[] = []
  const fails = { publish: false, reload: false, remove: false }
  const outputs = { now: wanted as readonly ConfigOutput[] | null }
  const publishing = { by: 'helper' as Place['by'], in: '/outputs', replaced: 'durable' as Replaced, left: false }
  const found = { now: [] as readonly FoundOutput[] | null }
  /** What every reload waits for. */
  const slow = { reload: Promise.resolve() }
  const act = (what: keyof typeof fails, name: string): Promise<void> => {
    done.push(`${what} ${name}${fails[what] ? ' failed' : ''}`)
    return fails[what] ? Promise.reject(new Error(`${what} does not work: repair it`)) : Promise.resolve()
  }
  const placement = openPlacement(
    { clock, timers: systemTimers, random: { ...systemRandom, unit: () => 0.5 }, log: silentLog },
    {
      leaves,
      lists,
      record: { changed: () => {} },
      nodeNow: () => ({ domain: 'example.test', node: 'gpu-001' }),
      outputs: () => outputs.now,
      publisher: {
        publish: async ({ output }, { directory }) => {
          await act('publish', `${directory}/${output.name}`)
          return publishing.replaced
        },
        reload: async (name) => {
          await act('reload', name)
          await slow.reload
        },
        remove: async (name, { directory }) => {
          await act('remove', `${directory}/${name}`)
          if (publishing.left) throw new LeftBehind(`${directory}/${name} is left there: remove it by hand`)
        },
        found: () =>
          found.now === null
            ? { outputs: [], more: new Error('the helper is away') }
            : { outputs: found.now, more: null },
        placeOf: ({ name }) =>
          name === 'nowhere'
            ? { by: 'nobody', why: 'there is no place' }
            : { by: publishing.by, directory: publishing.in },
      },
    },
    () => {},
  )
  const it = {
    authority,
    done,
    leaves,
    lists,
    fails,
    outputs,
    publishing,
    slow,
    found,
    placement,
    advance: (ms: number): void => void (aheadMs += ms),
    stateOf: (output: ConfigOutput) => placement.stateOf(output, null),
    leaf: (output: ConfigOutput): void => {
      const key = generateKey(output.key_type)
      const request = { ...termsOf(output, 1), keyPem: key.pkcs8Pem(), csrPem: makeCsr(key, output.name) }
      const of = { domain: 'example.test', node: 'gpu-001', output: output.name }
      const given = leafFrom(request, output, authority.leafFor(request.csrPem, output), of, clock.nowMs())
      if (given.kind === 'unusable') throw new Error(given.why)
      leaves.keep(withLeaf(leaves.current(), given.leaf))
    },
    fetch: (number: number): void => {
      const received = listsFrom(lists.current(), authority.lists(number), [], clock.nowMs())
      if (received.kind === 'unusable') throw new Error(received.why)
      lists.keep(received.ledger)
    },
    /** What was done since the last look. */
    look: async (): Promise<string[]> => {
      placement.look()
      await placement.settled()
      return done.splice(0)
    },
    /** What was done by it. */
    withdraw: async (): Promise<string[]> => {
      await placement.withdraw()
      return done.splice(0)
    },
  }
  return it
}

/** An output that names a reload. */
export const reloadedOutput = (change: Partial<ConfigOutput> = {}): ConfigOutput => {
  const output = outputOf(change)
  return { ...output, files: { ...output.files, reload: 'nginx' } }
}
