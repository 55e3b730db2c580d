// A checker that checks nothing reports success. Every boundary is violated here once, on purpose, and the neighbour
// that is allowed is shown to pass.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkBoundaries } from '../scripts/boundaries.ts'
import { violationsIn } from '../scripts/boundary-rules.ts'
import { root } from '../scripts/repository.ts'

type Planted = { boundary: string; file: string; refused: string[]; allowed: string[] }

const planted: Planted[] = [
  {
    boundary: 'the domain knows only itself, how a time is written and what a secret looks like',
    file: 'src/domain/x.ts',
    refused: [
      `import { y } from '#wire/y.ts'`,
      `import type { Store } from '#plane/store/store.ts'`,
      `import { systemClock } from '#platform/clock.ts'`,
      `import * as clock from '#platform/clock.ts'`,
      `import { createHash } from 'node:crypto'`,
      `import { Type } from 'typebox'`,
      `import { y } from '../pki/y.ts'`,
      `const y = await import('#wire/y.ts')`,
      `export { y } from '#wire/y.ts'`,
      `export * from '#wire/y.ts'`,
      `import '#wire/y.ts'`,
    ],
    allowed: [
      `import { isoTime } from '#platform/clock.ts'`,
      `import { redactSecrets } from '#platform/secret-shapes.ts'`,
      `import type { Node } from './node.ts'`,
      `// import '#wire/y.ts'`,
    ],
  },
  {
    boundary: 'what crosses the network knows the domain and its schemas',
    file: 'src/wire/x.ts',
    refused: [`import { y } from '#pki/y.ts'`, `import { y } from '#agent/y.ts'`, `import fastify from 'fastify'`],
    allowed: [
      `import { refuse } from '#domain/refusal.ts'`,
      `import { Type } from 'typebox'`,
      `import { Check } from 'typebox/value'`,
    ],
  },
  {
    boundary: 'certificates know no policy, no store and no network',
    file: 'src/pki/x.ts',
    refused: [
      `import { y } from '#plane/issuer/y.ts'`,
      `import { y } from '#platform/files.ts'`,
      `import * as tls from 'node:tls'`,
    ],
    allowed: [
      `import { sign } from 'node:crypto'`,
      `import { sha256 } from '#platform/bytes.ts'`,
      `import type { KeyType } from '#domain/profile.ts'`,
    ],
  },
  {
    boundary: 'the platform knows nothing of Muster',
    file: 'src/platform/x.ts',
    refused: [`import type { Node } from '#domain/node.ts'`, `import { y } from '../wire/y.ts'`],
    allowed: [
      `import * as fs from 'node:fs'`,
      `import { pino } from 'pino'`,
      `import { randomBytes } from 'node:crypto'`,
    ],
  },
  {
    boundary: 'the agent knows neither the plane nor the command line',
    file: 'src/agent/enrollment/x.ts',
    refused: [
      `import { y } from '#plane/y.ts'`,
      `import type { Y } from '#plane/store/store.ts'`,
      `import { y } from '../../cli/y.ts'`,
    ],
    allowed: [`import { y } from '#agent/keys/y.ts'`, `import { y } from '#wire/node-api.ts'`],
  },
  {
    boundary: 'the plane knows neither the agent nor the command line',
    file: 'src/plane/flows/x.ts',
    refused: [`import { y } from '#agent/y.ts'`, `import type { Y } from '#cli/y.ts'`],
    allowed: [`import { y } from '#domain/y.ts'`],
  },
  {
    boundary: 'the command line knows the mains, not what is behind them',
    file: 'src/cli/x.ts',
    refused: [`import { y } from '#plane/store/sqlite.ts'`, `import { y } from '#agent/channel/y.ts'`],
    allowed: [`import { runPlane } from '#plane/main.ts'`, `import { runAgent } from '#agent/main.ts'`],
  },
  {
    boundary: 'the plane is read in request order: flows never call listeners or authentication',
    file: 'src/plane/flows/x.ts',
    refused: [
      `import type { Route } from '#plane/listeners/route.ts'`,
      `import { y } from '../authn/y.ts'`,
      `import { y } from '#plane/main.ts'`,
    ],
    allowed: [
      `import { y } from '#plane/store/y.ts'`,
      `import { openFeed } from '#plane/feed/feed.ts'`,
      `import { y } from './y.ts'`,
    ],
  },
  {
    boundary: 'the plane is read in request order: the store calls nothing before it, and any part may name a seam',
    file: 'src/plane/store/x.ts',
    refused: [`import { y } from '#plane/flows/y.ts'`, `import { y } from '#plane/issuer/issuer.ts'`],
    allowed: [`import type { Issuer } from '#plane/issuer/issuer.ts'`, `import { DatabaseSync } from 'node:sqlite'`],
  },
  {
    boundary: 'a folder of the plane has a place in the order',
    file: 'src/plane/misc/x.ts',
    refused: [`export const y = 1`],
    allowed: [],
  },
  {
    boundary: 'files, sockets, processes, timers and databases belong to the platform',
    file: 'src/plane/listeners/x.ts',
    refused: [
      ...['fs', 'fs/promises', 'net', 'tls', 'http', 'https', 'http2', 'dns', 'dgram', 'child_process', 'sqlite'].map(
        (name) => `import * as y from 'node:${name}'`,
      ),
      ...['timers', 'timers/promises', 'worker_threads', 'perf_hooks'].map(
        (name) => `import { y } from 'node:${name}'`,
      ),
      `import { readFileSync } from 'fs'`,
      `const fs = process.getBuiltinModule('fs')`,
      `const y = await import(name)`,
    ],
    allowed: [
      `import type { TLSSocket } from 'node:tls'`,
      `import { isIP } from 'node:net'`,
      `import * as path from 'node:path'`,
    ],
  },
  {
    boundary: 'randomness belongs to the platform',
    file: 'src/plane/issuer/x.ts',
    refused: [
      ...['randomBytes', 'randomUUID', 'randomInt', 'webcrypto'].map((name) => `import { ${name} } from 'node:crypto'`),
      `import { createHash, randomBytes as r } from 'node:crypto'`,
      `import * as crypto from 'node:crypto'`,
      `import crypto from 'node:crypto'`,
    ],
    allowed: [`import { createHash, createHmac } from 'node:crypto'`],
  },
  {
    boundary: 'only a decision places an order',
    file: 'src/plane/flows/x.ts',
    refused: [`import { placeOrder } from '#domain/order.ts'`, `const order = domain.placeOrder(draft)`],
    allowed: [`import type { SigningOrder } from '#domain/order.ts'`],
  },
  {
    boundary: "Node's check of a certificate is replaced in two files only",
    file: 'src/agent/channel/x.ts',
    refused: [
      `connect({ rejectUnauthorized: false })`,
      `connect({ rejectUnauthorized })`,
      `options.rejectUnauthorized = no`,
    ],
    allowed: [`connect({ rejectUnauthorized: true })`],
  },
  {
    boundary: 'the platform carries that decision and makes none',
    file: 'src/platform/x.ts',
    refused: [`connect({ rejectUnauthorized: false })`],
    allowed: [`connect({ ...rest, rejectUnauthorized })`],
  },
  {
    boundary: 'tests trust the root of the plane they test',
    file: 'test/flows/x.test.ts',
    refused: [`connect({ rejectUnauthorized: false })`, `process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'`],
    allowed: [`connect({ ca: roots })`],
  },
  {
    boundary: 'code never imports tests, benchmarks or scripts',
    file: 'src/plane/flows/x.ts',
    refused: [
      `import { y } from '../../../test/fakes/y.ts'`,
      `import { y } from '../../../bench/y.ts'`,
      `import { y } from './y.test.ts'`,
    ],
    allowed: [],
  },
]

for (const { boundary, file, refused, allowed } of planted) {
  test(boundary, () => {
    for (const line of refused) assert.notDeepEqual(violationsIn(file, `${line}\n`), [], `${file} was allowed: ${line}`)
    for (const line of allowed) assert.deepEqual(violationsIn(file, `${line}\n`), [], `${file} was refused: ${line}`)
  })
}

test('the two files that verify by themselves may say so', () => {
  for (const file of ['src/plane/listeners/node-listener.ts', 'src/agent/enrollment/verified-connection.ts']) {
    assert.deepEqual(violationsIn(file, 'connect({ rejectUnauthorized: false })'), [])
  }
})

test('a violation is named by file and line, whatever stands around it', () => {
  const text = [`// why`, `import {`, `  type A,`, `  b,`, `} from '#wire/y.ts'`, ``].join('\n')
  assert.deepEqual(violationsIn('src/domain/x.ts', text), [
    'src/domain/x.ts:2 src/domain/ may not import A, b from src/wire/y.ts',
  ])
})

test('a test beside pure code may use the test tools, and still not another part of Muster', () => {
  const file = 'src/domain/x.test.ts'
  for (const from of ['node:test', 'node:fs', 'fast-check', '../../test/fakes/manual-clock.ts']) {
    assert.deepEqual(violationsIn(file, `import { y } from '${from}'`), [], from)
  }
  assert.notDeepEqual(violationsIn(file, `import { y } from '#plane/flows/y.ts'`), [])
})

test('the repository itself keeps every boundary', () => {
  assert.deepEqual(checkBoundaries(root), [])
})
