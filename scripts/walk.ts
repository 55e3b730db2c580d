// `npm run walk enroll` (also `renew`, `revoke`): carries out one such operation against a real plane under precise coverage,
// and prints the production files whose functions ran, by folder, in the order in which one comes to them from the route.
//
// Files of features, of domain/ and of the authority are counted: they are what a reader has to follow. Listed apart are
// mechanics, and what no import leads to: subscribers of the feed (plane/core/feed.ts has the list of these), and parts that a
// flow knows by their type only (a revocation calls receipts). Periodic tasks of the plane are left out: a function counts only
// if it ran more often than in a quiet interval of the same length.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { fileURLToPath } from 'node:url'
import WebSocket from 'ws'
import { benchRun } from '../bench/bench-run.ts'
import { activeNode } from '../test/process/active-node.ts'
import { rawNode } from '../test/process/raw-node.ts'
import { startPlane, type Plane } from '../test/process/start-plane.ts'
import { features, folderOf } from './boundary-rules.ts'
import { importsOf } from './imports-of.ts'
import { root } from './repository.ts'

/** `from`: where the route is handled. */
type Operation = { readonly from: string; prepare(plane: Plane): Promise<() => Promise<void>> }

const succeed = (what: string, status: number): void => {
  if (status >= 300) throw new Error(`${what} was answered ${status}`)
}

const operations: Record<string, Operation> = {
  enroll: {
    from: 'src/plane/enrollment/enroll-routes.ts',
    async prepare(plane) {
      const { body } = await plane.api('POST', '/v1/tokens', { node: `walk-${counter++}` })
      const node = rawNode(await plane.target())
      return async () => succeed('an enrollment', (await node.enrollByToken(body.secret)).status)
    },
  },
  renew: {
    from: 'src/plane/identity/identity-routes.ts',
    async prepare(plane) {
      const node = await activeNode(plane, `walk-${counter++}`)
      return async () => succeed('a renewal', (await node.renew()).reply.status)
    },
  },
  revoke: {
    from: 'src/plane/node/operator-node-actions.ts',
    async prepare(plane) {
      const node = await activeNode(plane, `walk-${counter++}`)
      const path = `/v1/nodes/${node.id()}/revoke`
      return async () => succeed('a revocation', (await plane.api('POST', path, { reason: 'walked' })).status)
    },
  },
}
let counter = 1

type Coverage = { result: { url: string; functions: { functionName: string; ranges: Range[] }[] }[] }
type Range = { readonly startOffset: number; readonly count: number }

/** Talks to the inspector of a process. */
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

const textOf = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')

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

/** Behind the seam of the issuer, which no import crosses. */
const isAuthority = (file: string): boolean => folderOf(file) === 'plane/authority'

const linesOf = (file: string): number => textOf(file).split('\n').length - 1

const print = (ran: ReadonlyMap<string, readonly string[]>, from: string): void => {
  const files = new Set(ran.keys())
  if (!files.has(from)) throw new Error(`${from} did not run: where is this route handled now?`)
  const reached = reachedFrom(files, from)
  const others = [...files].filter((file) => !reached.includes(file)).toSorted()
  const show = (title: string, those: readonly string[]): void => {
    console.log(`\n${title}: ${those.length} files, ${those.reduce((sum, file) => sum + linesOf(file), 0)} lines`)
    for (const file of those) console.log(`  ${file.padEnd(56)} ${(ran.get(file) ?? []).join(' ')}`)
  }
  show('to follow', [...reached.filter(isFollowed), ...others.filter(isAuthority)])
  show(
    'over the feed, through parts, and inside the store',
    others.filter((file) => isFollowed(file) && !isAuthority(file)),
  )
  show(
    'mechanics',
    [...reached, ...others].filter((file) => !isFollowed(file)),
  )
}

const [name = ''] = process.argv.slice(2)
const operation = operations[name]
if (operation === undefined) {
  console.error(`usage: npm run walk ${Object.keys(operations).join('|')}`)
  process.exit(64)
}

await benchRun(async (t) => {
  const plane = await startPlane(t, { env: { NODE_OPTIONS: '--inspect=127.0.0.1:0' } })
  const [, url] = /Debugger listening on (\S+)/.exec(plane.stderr()) ?? []
  if (url === undefined) throw new Error('the plane has no inspector')
  const inspector = await openInspector(url)
  await inspector.call('Profiler.enable')
  await inspector.call('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const take = async (): Promise<Map<string, number>> =>
    countsOf((await inspector.call('Profiler.takePreciseCoverage')) as Coverage)
  // What is done once in the life of a process is not part of an operation.
  await (
    await operation.prepare(plane)
  )()
  const run = await operation.prepare(plane)
  // The first verification of the journal begins two seconds after a start.
  await new Promise((resolve) => setTimeout(resolve, 5000))
  await take()
  await new Promise((resolve) => setTimeout(resolve, 300))
  const quiet = await take()
  const beganMs = performance.now()
  await run()
  // What follows the answer, as the feed's subscribers, belongs to it.
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, 300 - (performance.now() - beganMs))))
  const during = await take()
  inspector.close()
  const ran = new Map<string, string[]>()
  for (const [key, count] of during) {
    if (count <= (quiet.get(key) ?? 0)) continue
    const [file = '', functionName = ''] = key.split('\t')
    const known = ran.get(file) ?? []
    ran.set(file, functionName === '' || known.includes(functionName) ? known : [...known, functionName])
  }
  print(ran, operation.from)
})
