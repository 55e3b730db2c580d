// The production files that one operation of a real plane runs through, as precise coverage of its process shows them, and which
// of them a reader has to follow (scripts/walk.ts).

import * as fs from 'node:fs'
import * as path from 'node:path'
import { fileURLToPath } from 'node:url'
import WebSocket from 'ws'
import { activeNode } from '../test/process/active-node.ts'
import type { Scope } from '../test/process/cleanup.ts'
import { rawNode } from '../test/process/raw-node.ts'
import { startPlane, type Plane } from '../test/process/start-plane.ts'
import { features, folderOf } from './boundary-rules.ts'
import { importsOf } from './imports-of.ts'
import { root } from './repository.ts'

/** `from`: where the route is handled. */
type Operation = { readonly from: string; prepare(plane: Plane, name: string): Promise<() => Promise<void>> }

const succeed = (what: string, status: number): void => {
  if (status >= 300) throw new Error(`${what} was answered ${status}`)
}

export const operations: Readonly<Record<'enroll' | 'renew' | 'revoke', Operation>> = {
  enroll: {
    from: 'src/plane/enrollment/enroll-routes.ts',
    async prepare(plane, name) {
      const { body } = await plane.api('POST', '/v1/tokens', { node: name })
      const node = rawNode(await plane.target())
      return async () => succeed('an enrollment', (await node.enrollByToken(body.secret)).status)
    },
  },
  renew: {
    from: 'src/plane/identity/identity-routes.ts',
    async prepare(plane, name) {
      const node = await activeNode(plane, name)
      return async () => succeed('a renewal', (await node.renew()).reply.status)
    },
  },
  revoke: {
    from: 'src/plane/node/operator-node-actions.ts',
    async prepare(plane, name) {
      const node = await activeNode(plane, name)
      const route = `/v1/nodes/${node.id()}/revoke`
      return async () => succeed('a revocation', (await plane.api('POST', route, { reason: 'walked' })).status)
    },
  },
}

type Coverage = { result: { url: string; functions: { functionName: string; ranges: Range[] }[] }[] }
type Range = { readonly startOffset: number; readonly count: number }

/** Sends calls to the inspector of a process. */
const openInspector = async (url: string) => {
  const socket = new WebSocket(url)
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const waiting = new Map<number, (result: unknown) => void>()
  socket.on('message', (data: Buffer) => {
    const { id, result } = JSON.parse(data.toString()) as { id?: number; result?: unknown }
    if (id !== undefined) waiting.get(id)?.(result)
  })
  let last = 0
  return {
    call: (method: string, params: object = {}): Promise<unknown> =>
      new Promise((resolve) => {
        waiting.set(++last, resolve)
        socket.send(JSON.stringify({ id: last, method, params }))
      }),
    close: () => socket.close(),
  }
}

/** How often each function of src/ ran, by `file name start`, since the last time it was asked. */
const countsOf = ({ result }: Coverage): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const { url, functions } of result) {
    if (!url.startsWith('file:')) continue
    const file = path.relative(root, fileURLToPath(url))
    if (!file.startsWith(`src${path.sep}`)) continue
    for (const { functionName, ranges } of functions) {
      const [whole] = ranges
      if (whole !== undefined && whole.count > 0)
        counts.set(`${file}\t${functionName}\t${whole.startOffset}`, whole.count)
    }
  }
  return counts
}

/** The functions that ran, by file, in the order in which they stand there. One without a name is the empty text. */
type FunctionsRun = ReadonlyMap<string, readonly string[]>

/**
 * `settleMs`: how long the plane is left alone first, so that what it does after a start is over. `quietMs`: how long it is watched
 * without the operation, and with it. Only what ran more often with it counts.
 */
export const runOperation = async (
  t: Scope,
  { from, prepare }: Operation,
  { settleMs, quietMs }: { readonly settleMs: number; readonly quietMs: number },
): Promise<FunctionsRun> => {
  // The sources themselves: `./muster` runs what npm ci has made of them, in which no file of src/ can be told from another.
  const plane = await startPlane(t, {
    command: path.join(root, 'bin', 'muster.ts'),
    wrapper: [process.execPath, '--disable-warning=ExperimentalWarning'],
    env: { NODE_OPTIONS: '--inspect=127.0.0.1:0' },
  })
  const [, url] = /Debugger listening on (\S+)/.exec(plane.stderr()) ?? []
  if (url === undefined) throw new Error('the plane has no inspector')
  const inspector = await openInspector(url)
  await inspector.call('Profiler.enable')
  await inspector.call('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const take = async (): Promise<Map<string, number>> =>
    countsOf((await inspector.call('Profiler.takePreciseCoverage')) as Coverage)
  // What is done once in the life of a process is not part of an operation.
  await (
    await prepare(plane, 'walk-1')
  )()
  const run = await prepare(plane, 'walk-2')
  await new Promise((resolve) => setTimeout(resolve, settleMs))
  await take()
  await new Promise((resolve) => setTimeout(resolve, quietMs))
  const quiet = await take()
  const beganMs = performance.now()
  await run()
  // What a commit sets in motion may run after the answer.
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, quietMs - (performance.now() - beganMs))))
  const during = await take()
  inspector.close()
  const ran = new Map<string, string[]>()
  for (const [key, count] of during) {
    if (count <= (quiet.get(key) ?? 0)) continue
    const [file = '', functionName = ''] = key.split('\t')
    const known = ran.get(file) ?? []
    ran.set(file, known.includes(functionName) ? known : [...known, functionName])
  }
  if (!ran.has(from)) throw new Error(`${from} did not run: where is this route handled now?`)
  return ran
}

const textOf = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')

export const linesOf = (file: string): number => textOf(file).split('\n').length - 1

/** Those of `files` that a reader comes to who follows imports from the first, nearest first. A type leads to no code. */
const reachedFrom = (files: ReadonlySet<string>, first: string): readonly string[] => {
  const order = new Set<string>()
  const queue = [first]
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    if (order.has(file)) continue
    order.add(file)
    const imports = importsOf(file, textOf(file)).filter(({ typesOnly }) => !typesOnly)
    queue.push(...imports.flatMap(({ from }) => (files.has(from) ? [from] : [])))
  }
  return [...order].filter((file) => files.has(file))
}

/** Of a feature, of the rules, or what signs; everything else is mechanics. */
const isFollowed = (file: string): boolean => {
  const [part, folder = ''] = folderOf(file).split('/')
  return part === 'domain' || folder === 'authority' || (features as readonly string[]).includes(folder)
}

const isAuthority = (file: string): boolean => folderOf(file) === 'plane/authority'

type Walk = Readonly<Record<'followed' | 'elsewhere' | 'mechanics', readonly string[]>>

/**
 * No import crosses the seam of the issuer, so a file of the authority is followed where a function with a name ran: the flow or the
 * issuer has called it. One of which only functions without a name ran is a subscriber of the feed, as the others that no import
 * leads to.
 */
export const walkOf = (ran: FunctionsRun, from: string): Walk => {
  const reached = reachedFrom(new Set(ran.keys()), from)
  const others = [...ran.keys()].filter((file) => !reached.includes(file)).toSorted()
  const signs = (file: string): boolean => isAuthority(file) && (ran.get(file) ?? []).some((name) => name !== '')
  return {
    followed: [...reached.filter(isFollowed), ...others.filter(signs)],
    elsewhere: others.filter((file) => isFollowed(file) && !signs(file)),
    mechanics: [...reached, ...others].filter((file) => !isFollowed(file)),
  }
}
