// Many agents in one process, for tests that need more of them than a machine has room for processes.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { readStatusFile } from '#agent/diagnostics/status-file.ts'
import type { DemoAgent } from '#cli/demo/demo-agents.ts'
import type { Speaking } from './agent-member.ts'
import { startedCommand, startChild } from './child.ts'
import type { Scope } from './cleanup.ts'
import type { Plane } from './start-plane.ts'
import { tempFolder } from './temp-folder.ts'

export type CrowdMember = Speaking & { readonly state: string }

export const joinCrowd = async (
  t: Scope,
  plane: Plane,
  options: { readonly prefix: string; readonly count: number; readonly profile: string },
): Promise<CrowdMember[]> => {
  const folder = tempFolder(t)
  const agents: DemoAgent[] = []
  for (let number = 1; number <= options.count; number++) {
    const id = `${options.prefix}-${number}`
    const hardwareFile = path.join(folder, `${id}.json`)
    fs.writeFileSync(hardwareFile, JSON.stringify({ macs: [], bmc_serial: `CROWD-${id}` }))
    const { status, body } = await plane.api('POST', '/v1/tokens', { node: id, profile: options.profile })
    if (status >= 300) throw new Error(`no token for ${id}: ${JSON.stringify(body)}`)
    agents.push({ id, join: body.join, keyStorage: 'file', hardwareFile, asksForName: false })
  }
  const child = startChild(t, startedCommand, ['demo-agents', folder], { input: JSON.stringify(agents) })
  return agents.map(({ id }) => {
    const state = path.join(folder, 'agents', id)
    return { id, state, stderr: child.stderr, says: () => readStatusFile(state) }
  })
}
