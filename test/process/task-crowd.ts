// Nodes that take tasks, many in one process (task-crowd-process.ts), for tests that need more of them than a machine has room for
// agents. What verifies, remembers and runs is the code of the helper.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { ReplicaDoor } from '../cluster/enrollment-load.ts'
import { programUser } from '../fakes/tasked-host.ts'
import { startChild, type Child } from './child.ts'
import type { Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'
import type { Identity, NodeTarget } from './node-call.ts'
import { newSecret } from './plane-records.ts'
import { rawNode } from './raw-node.ts'
import { linesOf, tasksRemembered, writeNoteProgram, type RememberedTask } from './task-host.ts'
import { tempFolder } from './temp-folder.ts'

/** `channel`: as an agent. `polls`: asks every plane at once, as a node behind a load balancer whose calls overtake each other. */
export type CrowdNode = { readonly id: string; readonly folder: string; readonly takes: 'channel' | 'polls' }

/** What a process is started with. */
export type CrowdOrder = {
  readonly targets: readonly NodeTarget[]
  readonly nodes: readonly (CrowdNode & { readonly identity: Identity })[]
  /** A line for each task that was refused, by the host or by a plane. */
  readonly refusals: string
  /** A line for each envelope that came: the id of its task, and its counter. */
  readonly envelopes: string
}

export type TaskCrowd = {
  readonly ids: readonly string[]
  readonly processes: number
  /** Ends a process at once, with all its nodes, and starts another. */
  kill(process: number): Promise<void>
  /** Of the program `note`: its argument, each time it was started. */
  noted(): readonly string[]
  remembered(): readonly RememberedTask[]
  refusals(): readonly string[]
  envelopes(): readonly string[]
}

export type CrowdOptions = { readonly prefix: string; readonly count: number; readonly processes: number }

/** Enrollments under way at once. */
const atOnce = 16

export const startTaskCrowd = async (
  t: Scope,
  doors: readonly ReplicaDoor[],
  { prefix, count, processes }: CrowdOptions,
): Promise<TaskCrowd> => {
  const [first] = doors
  assert(first !== undefined, 'there are no planes')
  const folder = fs.realpathSync(tempFolder(t))
  fs.chmodSync(folder, 0o755)
  const inFolder = (name: string): string => path.join(folder, name)
  writeNoteProgram(inFolder('note'), inFolder('notes'))
  const keys = await first.plane.muster('ca', 'bundle', '--statements')
  assert.equal(keys.code, 0, keys.stderr)
  fs.writeFileSync(inFolder('statement-keys.pem'), keys.stdout, { mode: 0o644 })

  const nodes: CrowdOrder['nodes'][number][] = []
  const join = async (number: number): Promise<void> => {
    const id = `${prefix}-${number}`
    const { plane, target } = doors[number % doors.length] ?? first
    const node = rawNode(target)
    const enrolled = await node.enrollByToken(await newSecret(plane, id))
    assert.equal(enrolled.status, 200, `${id}: ${JSON.stringify(enrolled.body)}`)
    const confirmed = await node.confirm()
    assert.equal(confirmed.status, 200, `${id}: ${JSON.stringify(confirmed.body)}`)
    const own = inFolder(id)
    fs.mkdirSync(own)
    fs.writeFileSync(path.join(own, 'agent.toml'), agentToml(folder, plane.domain, id), { mode: 0o644 })
    nodes[number] = { id, folder: own, takes: number % 2 === 0 ? 'channel' : 'polls', identity: node.identity() }
  }
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await join(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, lane))

  const start = async (number: number): Promise<Child> => {
    const order: CrowdOrder = {
      targets: doors.map(({ target }) => target),
      nodes: nodes.filter((_, at) => at % processes === number),
      refusals: inFolder('refusals'),
      envelopes: inFolder('envelopes'),
    }
    const program = path.join(import.meta.dirname, 'task-crowd-process.ts')
    const args = ['--disable-warning=ExperimentalWarning', program]
    const child = startChild(t, process.execPath, args, { input: JSON.stringify(order) })
    await eventually(
      `process ${number} of the nodes to be ready`,
      () => {
        assert.ok(child.running(), child.stderr())
        return child.stdout().includes('ready')
      },
      { withinMs: 60_000 },
    )
    return child
  }
  const children = await Promise.all(Array.from({ length: processes }, (_, number) => start(number)))
  return {
    ids: nodes.map(({ id }) => id),
    processes,
    kill: async (number) => {
      await children[number]?.kill9()
      children[number] = await start(number)
    },
    noted: () => linesOf(inFolder('notes')),
    remembered: () => nodes.flatMap((node) => tasksRemembered(path.join(node.folder, 'helper'))),
    refusals: () => linesOf(inFolder('refusals')),
    envelopes: () => linesOf(inFolder('envelopes')),
  }
}

const agentToml = (folder: string, domain: string, id: string): string => `
[node]
domain = "${domain}"
id = "${id}"

[tasks]
statement_keys = "${folder}/statement-keys.pem"
allow = ["run"]

[tasks.run.note]
executable = "${folder}/note"
user = "${programUser}"
arguments = "any"
`
