// Gets every node of the demo what it joins with: a token of its own, a token of the domain, or a registration of its
// hardware.

import { makeFolder, replaceFile } from '#platform/files.ts'
import { formatJoinString } from '#wire/core/join-string.ts'
import { tokenApi } from '#wire/enrollment/token-api.ts'
import { nodeApi } from '#wire/node/node-api.ts'
import type { DemoAgent } from './demo-agents.ts'
import type { DemoNode } from './demo-fleet.ts'
import { inParallel } from '#cli/kit/in-parallel.ts'
import type { OperatorClient } from '#cli/kit/operator-client.ts'
import type { PlaneReadyBody } from '#cli/plane/plane-banner.ts'

export const inviteFleet = (
  plane: OperatorClient,
  ready: PlaneReadyBody,
  fleet: readonly DemoNode[],
  folder: string,
): Promise<DemoAgent[]> => {
  const hardwareFolder = `${folder}/hardware`
  makeFolder(hardwareFolder, 0o700)
  return inParallel(fleet, 8, async (node) => {
    const hardwareFile = `${hardwareFolder}/${node.id}.json`
    replaceFile(hardwareFile, JSON.stringify({ macs: [node.mac], bmc_serial: node.bmcSerial }), 0o600)
    return {
      id: node.id,
      join: await joinOf(plane, ready, node),
      keyStorage: node.profile === 'hpc-diskless' ? 'memory' : 'file',
      hardwareFile,
      asksForName: node.profile === 'mesh-paas',
    }
  })
}

const joinOf = async (plane: OperatorClient, ready: PlaneReadyBody, node: DemoNode): Promise<string> => {
  switch (node.profile) {
    case 'gpu-cloud':
      return (await plane.ask(tokenApi.create, { body: { node: node.id, profile: node.profile } })).join
    case 'mesh-paas':
      return (await plane.ask(tokenApi.create, { body: { profile: node.profile } })).join
    case 'hpc-diskless': {
      const body = { id: node.id, profile: node.profile, macs: [node.mac], bmc_serial: node.bmcSerial }
      await plane.ask(nodeApi.register, { body })
      const { node_url: url, domain, root_fingerprint: rootFingerprint } = ready
      return formatJoinString({ url, domain, rootFingerprint, secret: null })
    }
  }
}
