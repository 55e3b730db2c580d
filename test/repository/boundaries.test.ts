// A checker that checks nothing reports success. Every boundary is violated here once, on purpose, and the neighbour
// that is allowed is shown to pass.

import assert from 'node:assert/strict'
import * as path from 'node:path'
import { test } from 'node:test'
import { checkBoundaries, unusedPermissions } from '../../scripts/boundaries.ts'
import { features, mayKnow, violationsIn } from '../../scripts/boundary-rules.ts'
import { root } from '../../scripts/repository.ts'

type Planted = { boundary: string; file: string; refused: string[]; allowed: string[] }

const planted: Planted[] = [
  {
    boundary: 'the domain knows only itself, how a time is written and what a secret looks like',
    file: 'src/domain/alerts/x.ts',
    refused: [
      `import { y } from '#wire/core/y.ts'`,
      `import type { Store } from '#plane/store/contract/store.ts'`,
      `import { systemClock } from '#platform/clock.ts'`,
      `import * as clock from '#platform/clock.ts'`,
      `import { createHash } from 'node:crypto'`,
      `import { Type } from 'typebox'`,
      `import { y } from '../../pki/y.ts'`,
      `const y = await import('#wire/core/y.ts')`,
      `export { y } from '#wire/core/y.ts'`,
      `export * from '#wire/core/y.ts'`,
      `import '#wire/core/y.ts'`,
    ],
    allowed: [
      `import { isoTime } from '#platform/clock.ts'`,
      `import { redactSecrets } from '#platform/secret-shapes.ts'`,
      `import type { Node } from '#domain/core/node.ts'`,
      `import type { Alert } from './alert.ts'`,
      `// import '#wire/core/y.ts'`,
    ],
  },
  {
    boundary: 'what crosses the network knows the domain and its schemas',
    file: 'src/wire/fleet/x.ts',
    refused: [`import { y } from '#pki/y.ts'`, `import { y } from '#agent/y.ts'`, `import fastify from 'fastify'`],
    allowed: [
      `import { refuse } from '#domain/core/refusal.ts'`,
      `import { Type } from 'typebox'`,
      `import { Check } from 'typebox/value'`,
    ],
  },
  {
    boundary: 'certificates know no policy, no store and no network',
    file: 'src/pki/x.ts',
    refused: [
      `import { y } from '#plane/authority/y.ts'`,
      `import { y } from '#platform/files.ts'`,
      `import * as tls from 'node:tls'`,
    ],
    allowed: [
      `import { sign } from 'node:crypto'`,
      `import { sha256 } from '#platform/bytes.ts'`,
      `import type { KeyType } from '#domain/core/profile.ts'`,
    ],
  },
  {
    boundary: 'the platform knows nothing of Muster',
    file: 'src/platform/x.ts',
    refused: [`import type { Node } from '#domain/core/node.ts'`, `import { y } from '../wire/core/y.ts'`],
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
      `import { y } from '#plane/main.ts'`,
      `import type { Y } from '#plane/store/contract/store.ts'`,
      `import { y } from '../../cli/kit/y.ts'`,
    ],
    allowed: [`import { y } from '#agent/state/y.ts'`, `import { y } from '#wire/core/y.ts'`],
  },
  {
    boundary: 'the plane knows neither the agent nor the command line',
    file: 'src/plane/enrollment/x.ts',
    refused: [`import { y } from '#agent/core/y.ts'`, `import type { Y } from '#cli/kit/y.ts'`],
    allowed: [`import { y } from '#domain/enrollment/y.ts'`],
  },
  {
    boundary: 'the command line knows the doors of the plane that are listed, not what is behind them',
    file: 'src/cli/plane/x.ts',
    refused: [
      `import { y } from '#plane/store/sqlite/open-sqlite-store.ts'`,
      `import { y } from '#plane/foundation/initialise.ts'`,
      `import { runAgent } from '#agent/main.ts'`,
      `import { y } from '#agent/channel/y.ts'`,
    ],
    allowed: [`import { runPlane } from '#plane/main.ts'`, `import { y } from '#plane/foundation/initialise-plane.ts'`],
  },
  {
    boundary: 'a feature of the domain knows the core and what is listed for it',
    file: 'src/domain/fleet/x.ts',
    refused: [`import { y } from '#domain/network/y.ts'`, `import type { Y } from '../revocation/y.ts'`],
    allowed: [`import { y } from '#domain/core/y.ts'`],
  },
  {
    boundary: 'the core of the domain knows no feature',
    file: 'src/domain/core/x.ts',
    refused: [`import type { Alert } from '#domain/alerts/alert.ts'`],
    allowed: [`import { y } from './node.ts'`],
  },
  {
    boundary: 'the list of rows names the types of features, and calls none',
    file: 'src/domain/core/change.ts',
    refused: [
      `import { decideAlert } from '#domain/alerts/alert-decisions.ts'`,
      `import type { Y } from '#domain/recovery/y.ts'`,
    ],
    allowed: [`import type { Alert } from '#domain/alerts/alert.ts'`],
  },
  {
    boundary: 'a feature of the plane knows the mechanics and the features that are listed for it',
    file: 'src/plane/enrollment/x.ts',
    refused: [
      `import { y } from '#plane/recovery/y.ts'`,
      `import type { Y } from '#plane/ca/y.ts'`,
      `import { y } from '../authn/y.ts'`,
      `import { y } from '#plane/channel/y.ts'`,
      `import { y } from '#plane/store/sqlite/y.ts'`,
      `import { y } from '#plane/main.ts'`,
      `import { y } from '#plane/boot/y.ts'`,
    ],
    allowed: [
      `import type { Core } from '#plane/core/core.ts'`,
      `import { openFeed } from '#plane/core/feed.ts'`,
      `import { y } from '#plane/identity/y.ts'`,
      `import { y } from './y.ts'`,
    ],
  },
  {
    boundary: 'mechanics call no feature: neither HTTP',
    file: 'src/plane/http/x.ts',
    refused: [`import { y } from '#plane/enrollment/y.ts'`, `import type { Y } from '#plane/authn/y.ts'`],
    allowed: [`import type { Authority } from '#plane/authority/authority.ts'`],
  },
  {
    boundary: 'nor the store',
    file: 'src/plane/store/sqlite/x.ts',
    refused: [`import { y } from '#plane/core/y.ts'`, `import type { Issuer } from '#plane/core/issuer.ts'`],
    allowed: [`import { y } from '#plane/store/contract/y.ts'`, `import { DatabaseSync } from 'node:sqlite'`],
  },
  {
    boundary: 'parts of the agent know what is listed for them',
    file: 'src/agent/state/x.ts',
    refused: [
      `import { y } from '#agent/link/y.ts'`,
      `import type { Y } from '#agent/recovery/y.ts'`,
      `import { runAgent } from '#agent/main.ts'`,
    ],
    allowed: [`import { y } from '#agent/core/y.ts'`],
  },
  {
    boundary: 'nouns of the command line know the kit and what is listed for them',
    file: 'src/cli/alerts/x.ts',
    refused: [`import { y } from '#cli/node/y.ts'`, `import { y } from '../plans/plan.ts'`],
    allowed: [`import { y } from '#cli/kit/y.ts'`],
  },
  {
    boundary: 'the kit of the command line knows no noun',
    file: 'src/cli/kit/x.ts',
    refused: [`import { y } from '#cli/node/y.ts'`, `import { allNouns } from '#cli/all-nouns.ts'`],
    allowed: [`import { y } from './y.ts'`],
  },
  {
    boundary: 'programs start the command line and nothing behind it',
    file: 'bin/x.ts',
    refused: [`import { runPlane } from '#plane/main.ts'`, `import { y } from '#cli/node/y.ts'`],
    allowed: [`import { runCli } from '#cli/kit/run-cli.ts'`, `import { systemClock } from '#platform/clock.ts'`],
  },
  {
    boundary: 'a folder of src is in the table',
    file: 'src/plane/misc/x.ts',
    refused: [`export const y = 1`],
    allowed: [],
  },
  {
    boundary: 'files, sockets, processes, timers and databases belong to the platform',
    file: 'src/plane/boot/x.ts',
    refused: [
      ...['fs', 'fs/promises', 'net', 'tls', 'http', 'https', 'http2', 'dns', 'dgram', 'child_process', 'sqlite'].map(
        (name) => `import * as y from 'node:${name}'`,
      ),
      ...['timers', 'timers/promises', 'worker_threads', 'ffi', 'perf_hooks'].map(
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
    file: 'src/plane/authority/x.ts',
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
    file: 'src/plane/enrollment/x.ts',
    refused: [`import { placeOrder } from '#domain/core/certificate.ts'`, `const order = domain.placeOrder(draft)`],
    allowed: [`import type { SigningOrder } from '#domain/core/certificate.ts'`],
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
    file: 'src/plane/enrollment/x.ts',
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

test('the two files with their own verification may say so', () => {
  for (const file of ['src/plane/boot/node-listener.ts', 'src/agent/link/verified-connection.ts']) {
    assert.deepEqual(violationsIn(file, 'connect({ rejectUnauthorized: false })'), [])
  }
})

test('a violation is named by file and line, whatever stands around it', () => {
  const text = [`// why`, `import {`, `  type A,`, `  b,`, `} from '#wire/core/y.ts'`, ``].join('\n')
  assert.deepEqual(violationsIn('src/domain/alerts/x.ts', text), [
    'src/domain/alerts/x.ts:2 src/domain/alerts/ may not import A, b from src/wire/core/y.ts',
  ])
})

test('a test beside pure code may use the test tools, and still not another part of Muster', () => {
  const file = 'src/domain/alerts/x.test.ts'
  for (const from of ['node:test', 'node:fs', 'fast-check', '../../../test/fakes/manual-clock.ts']) {
    assert.deepEqual(violationsIn(file, `import { y } from '${from}'`), [], from)
  }
  assert.deepEqual(
    violationsIn(file, `import { y } from '#domain/recovery/y.ts'`),
    [],
    'inner walls are for production',
  )
  assert.notDeepEqual(violationsIn(file, `import { y } from '#plane/core/y.ts'`), [])
})

const reachedFrom = (folder: string): Set<string> => {
  const reached = new Set<string>()
  const waiting = [folder]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const [name, known] of Object.entries(mayKnow[next] ?? {})) {
      for (const entry of known) {
        const within = typeof entry === 'string' ? entry : entry.types
        // A door of the plane or the agent is a file: what counts is its folder.
        const to = path.posix.join(name, within.endsWith('.ts') ? path.posix.dirname(within) : within)
        if (reached.has(to)) continue
        reached.add(to)
        waiting.push(to)
      }
    }
  }
  return reached
}

/** Folders that reach each other through the table. Rows of single files are exceptions: types, which make no circle. */
const circles = (): string[][] => {
  const folders = Object.keys(mayKnow).filter((key) => !key.endsWith('.ts'))
  const reached = new Map(folders.map((folder) => [folder, reachedFrom(folder)]))
  const together = folders.map((folder) =>
    folders
      .filter((other) => reached.get(folder)?.has(other) === true && reached.get(other)?.has(folder) === true)
      .sort(),
  )
  return [...new Set(together.filter((group) => group.length > 0).map((group) => group.join(' ')))].map((group) =>
    group.split(' '),
  )
}

test('no folders know each other in a circle', () => {
  assert.deepEqual(circles(), [])
})

test('a file with a row of its own knows other folders by their types only', () => {
  for (const [key, row] of Object.entries(mayKnow)) {
    if (!key.endsWith('.ts')) continue
    for (const entry of Object.values(row).flat()) assert.equal(typeof entry, 'object', `${key} imports values`)
  }
})

test('a permission that no file uses is reported', () => {
  const text = `import { y } from '#domain/core/y.ts'`
  const unused = unusedPermissions([{ file: 'src/domain/alerts/x.ts', text }])
  assert.ok(unused.some((line) => line.endsWith(' domain/fleet -> domain/core')))
  assert.ok(!unused.some((line) => line.endsWith(' domain/alerts -> domain/core')))
})

test('every feature has a folder in the domain and one in the plane', () => {
  for (const feature of features)
    for (const name of ['domain', 'plane'])
      assert.ok(Object.hasOwn(mayKnow, `${name}/${feature}`), `${name}/${feature}`)
})

test('the repository itself keeps every boundary', () => {
  assert.deepEqual(checkBoundaries(root), [])
})
