// Agents in processes of their own that let their certificates expire, and what can be seen of them.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { Identity } from '#agent/state/credentials.ts'
import type { StatusFile } from '#agent/diagnostics/status-file.ts'
import { eventually } from '../process/eventually.ts'
import type { Agent } from '../process/start-agent.ts'
import type { Plane } from '../process/start-plane.ts'

export type NodeView = { membership: string; channel_open: boolean; epoch: number }

export const nodeOf = async (plane: Plane, id: string): Promise<NodeView> =>
  (await plane.api('GET', `/v1/nodes/${id}`)).body as NodeView

/** Certificates of six seconds: renewed after three, gone soon after an agent is. */
export const briefProfile = async (plane: Plane, name: string, ...settings: string[]): Promise<void> => {
  const made = await plane.muster(
    'profile',
    'create',
    name,
    '--from',
    'gpu-cloud',
    'certificate.lifetimeMs=6s',
    ...settings,
  )
  assert.equal(made.code, 0, made.stderr)
}

export const connected = (plane: Plane, id: string, epoch: number, withinMs = 30_000): Promise<NodeView> =>
  eventually(
    `${id} to be connected in epoch ${epoch}`,
    async () => {
      const node = await nodeOf(plane, id)
      return node.membership === 'active' && node.channel_open && node.epoch === epoch ? node : null
    },
    { withinMs },
  )

export const statusOf = (agent: Pick<Agent, 'state'>): StatusFile =>
  JSON.parse(fs.readFileSync(path.join(agent.state, 'status.json'), 'utf8')) as StatusFile

const identityFile = (agent: Pick<Agent, 'state'>): string => path.join(agent.state, 'identity.json')

export const identityOf = (agent: Pick<Agent, 'state'>): Identity => {
  const { identity } = JSON.parse(fs.readFileSync(identityFile(agent), 'utf8')) as { identity: Identity | null }
  return identity ?? assert.fail('no identity')
}

/** As if the trust of the domain had changed behind the back of a machine that was off. */
export const withIdentity = (agent: Pick<Agent, 'state'>, change: (identity: Identity) => Identity): void => {
  const file = JSON.parse(fs.readFileSync(identityFile(agent), 'utf8')) as { identity: Identity }
  fs.writeFileSync(identityFile(agent), JSON.stringify({ ...file, identity: change(file.identity) }))
}

export const stoppedUntilExpired = async (agent: Agent): Promise<void> => {
  await agent.stop()
  const { notAfterMs } = identityOf(agent).current
  await eventually('its certificate to be over', () => Date.now() > notAfterMs + 200, { withinMs: 15_000 })
}

export const troubleAt = (agent: Agent, place: string, code: string, withinMs = 20_000): Promise<StatusFile> =>
  eventually(
    `${code} at ${place}`,
    () => {
      const status = statusOf(agent)
      return status.troubles.some((what) => what.place === place && what.code === code) ? status : null
    },
    { withinMs },
  )
