// docs/API.md lists every frame of the channel, and who sends it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { test } from 'node:test'
import { AgentFrame, type PlaneFrame } from '#wire/channel/channel.ts'

/** PlaneFrame is a type and leaves nothing at run time: the compiler insists that none is missing here. */
const fromPlane: Readonly<Record<PlaneFrame['type'], true>> = {
  hello: true,
  config: true,
  trust: true,
  closing: true,
  reported: true,
  sighting: true,
  peers: true,
  program_lists: true,
  task: true,
  task_verifiers: true,
  issuer_roots: true,
  unknown_type: true,
}

const fromAgent: readonly string[] = AgentFrame.anyOf.map(({ properties }) => properties.type.const)

/** Its lines are `| `frame` | from | what it says |`. */
const listed = (): readonly (readonly [frame: string, from: string])[] => {
  const page = fs.readFileSync('docs/API.md', 'utf8')
  const [, section = ''] = /\n## The channel\n([^]*?)\n## /.exec(page) ?? []
  return [...section.matchAll(/^\| `([a-z_]+)` +\| (agent|plane|both) +\|/gm)].map(([, frame = '', from = '']) => [
    frame,
    from,
  ])
}

test('docs/API.md lists every frame of the channel with who sends it, and no other', () => {
  const all = [...new Set([...fromAgent, ...Object.keys(fromPlane)])]
  const expected = all.map((frame) => {
    const byBoth = fromAgent.includes(frame) && frame in fromPlane
    return [frame, byBoth ? 'both' : frame in fromPlane ? 'plane' : 'agent'] as const
  })
  assert.deepEqual(listed().toSorted(byName), expected.toSorted(byName))
})

const byName = ([one]: readonly string[], [other]: readonly string[]): number => (String(one) < String(other) ? -1 : 1)
