// The scrape addresses of nodes, as Prometheus' own service discovery reads them from a real plane.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { sharedPlane } from '../process/shared-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

const plane = sharedPlane()
const run = promisify(execFile)

type Found = readonly { readonly labels: Readonly<Record<string, string>> }[]

/** It waits for all of its time before it says what it has found: little at first, more where the machine is busy. */
const discovered = async (promtool: string, config: string): Promise<Found> => {
  for (const seconds of [2, 5, 30]) {
    const { stdout } = await run(promtool, ['check', 'service-discovery', `--timeout=${seconds}s`, config, 'hosts'])
    const found = JSON.parse(stdout) as Found
    if (found.length > 0) return found
  }
  return []
}

test('Prometheus discovers the nodes with a scrape address, by a key of a viewer', async (t) => {
  const promtool = withPeer(t, 'promtool')
  if (promtool === null) return
  const { body: created } = await plane().api('POST', '/v1/keys', { name: 'prometheus', role: 'viewer' })
  for (const id of ['gpu-001', 'gpu-002']) await plane().api('POST', '/v1/nodes', { id })
  const set = await plane().api('POST', '/v1/nodes/gpu-001/scrape-address', { address: '10.0.0.7:9100' })
  assert.equal(set.status, 200)

  const folder = tempFolder(t)
  const config = path.join(folder, 'prometheus.yml')
  fs.writeFileSync(path.join(folder, 'muster.key'), created.secret, { mode: 0o600 })
  const discovery = {
    url: `${plane().operatorUrl}/v1/prometheus/targets`,
    // The type is the default of Prometheus, and not of promtool.
    authorization: { type: 'Bearer', credentials_file: path.join(folder, 'muster.key') },
  }
  fs.writeFileSync(config, JSON.stringify({ scrape_configs: [{ job_name: 'hosts', http_sd_configs: [discovery] }] }))
  assert.deepEqual(
    (await discovered(promtool, config)).map(({ labels }) => [
      labels['instance'],
      labels['node'],
      labels['profile'],
      labels['domain'],
    ]),
    [['10.0.0.7:9100', 'gpu-001', 'gpu-cloud', plane().domain]],
  )
})
