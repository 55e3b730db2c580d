// The agent dies after the plane has committed what it asked for, and before it has read the reply. The same request gets the
// same answer (ruling 4), at an enrollment, a renewal and a recovery.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inParallel } from '#cli/kit/in-parallel.ts'
import type { Scope } from '../process/cleanup.ts'
import { eventually } from '../process/eventually.ts'
import { certificateBytes, startFaultProxy, type FaultProxy } from '../process/fault-proxy.ts'
import { keptCredentials } from '../process/kept-credentials.ts'
import { checkStored, newMachine, nodeOf, nudgedUntil, untilExpired, type Machine } from '../process/mortal-machine.ts'
import type { Json } from '../process/operator-call.ts'
import type { Agent } from '../process/start-agent.ts'
import type { Plane } from '../process/start-plane.ts'
import { isSigned, planeOfBriefLives, recoveryOf, restarted, rounds, reportReturnTimes } from './agent-deaths.ts'

type Network = { readonly plane: Plane; readonly proxies: readonly FaultProxy[] }

/** The plane tells its nodes the address of the proxies: the same ports on another loopback address. */
const network = async (scope: Scope): Promise<Network> => {
  const plane = await planeOfBriefLives(scope, '--server-name', '127.0.0.2', '--server-name', '127.0.0.1')
  const ports = [plane.nodePort, Number(new URL(plane.recoveryUrl).port)]
  const proxyOf = (port: number): Promise<FaultProxy> =>
    startFaultProxy(scope, { host: '127.0.0.1', port }, { host: '127.0.0.2', port })
  return { plane, proxies: await Promise.all(ports.map(proxyOf)) }
}

/** Replies with a certificate are lost until the plane has committed for every machine, and each was killed then. */
const killedUnanswered = async (
  { proxies }: Network,
  machines: readonly Machine[],
  ask: (machine: Machine, over: AbortSignal) => Agent,
  committed: (node: Json, machine: Machine) => boolean,
): Promise<void> => {
  for (const proxy of proxies) proxy.dropReplies(Infinity, certificateBytes)
  const over = new AbortController()
  await inParallel(machines, machines.length, async (machine) => {
    const agent = ask(machine, over.signal)
    // An answer that came through before replies were lost does not count: what is kept has to be what was signed.
    const hasCommitted = async (): Promise<boolean> =>
      committed(await nodeOf(machine), machine) && (await isSigned(machine, keptCredentials(machine.state)?.request))
    // An agent that waits long enough expires and replaces its request: it is held still between the look and its end.
    const isCaught = async (): Promise<boolean> => {
      if (!(await hasCommitted())) return false
      agent.signal('SIGSTOP')
      if (await hasCommitted()) return true
      agent.signal('SIGCONT')
      return false
    }
    await eventually(`the plane to commit for ${machine.id}`, isCaught, { withinMs: 120_000 })
    await agent.kill9()
    // Still there: no answer was read.
    assert.ok(keptCredentials(machine.state)?.request, `${machine.id} has no request to repeat`)
  })
  over.abort()
  for (const proxy of proxies) proxy.pass()
}

/** They share the proxies, and so the moments at which these lose something. */
const together = Math.min(rounds, 10)

test(`an agent killed before it has read the reply, ${rounds} times each: its request is answered with what was signed`, async (t) => {
  const net = await network(t)
  const backMs: number[] = []
  let issued = 0
  for (let pass = 0; pass < Math.ceil(rounds / together); pass++) {
    const places = Array.from({ length: together }, (_, place) => place)
    const machines = await inParallel(places, together, (place) =>
      newMachine(t, net.plane, { id: `lost-${pass}-${place}`, profile: 'brief', recovery: recoveryOf(pass + place) }),
    )
    const agents = new Map<Machine, Agent>()
    const agentOf = (machine: Machine): Agent => agents.get(machine) ?? assert.fail('it has not been started')
    const each = (work: (machine: Machine, place: number) => Promise<void>): Promise<unknown> =>
      inParallel(machines, together, (machine) => work(machine, machines.indexOf(machine)))
    const back = async (machine: Machine, killedAt: string): Promise<void> => {
      const again = await restarted(machine, killedAt)
      backMs.push(again.backMs)
      agents.set(machine, again.agent)
    }

    const start = (machine: Machine): Agent => machine.start()
    await killedUnanswered(net, machines, start, (node) => node.membership === 'enrolled')
    await each((machine) => back(machine, 'enroll: answered'))

    const nudge = (machine: Machine, over: AbortSignal): Agent => {
      void nudgedUntil(over, machine, agentOf(machine))
      return agentOf(machine)
    }
    const isPending = ({ slot }: Json): boolean => slot === 'pending'
    await killedUnanswered(net, machines, nudge, (node) => node.certificates.some(isPending))
    await each(async (machine, place) => {
      // Half of them come too late for what was signed: then it is the recovery that has to put up with the lost reply.
      if (place % 2 === 1) await untilExpired(machine)
      await back(machine, 'renew: answered')
    })

    const epochs = new Map<Machine, number>()
    await each(async (machine) => {
      await agentOf(machine).stop()
      epochs.set(machine, (await nodeOf(machine)).epoch)
      await untilExpired(machine)
    })
    await killedUnanswered(net, machines, start, (node, machine) => node.epoch > (epochs.get(machine) ?? Infinity))
    await each(async (machine) => {
      await back(machine, 'recover: answered')
      issued += (await checkStored(machine)).length
      await agentOf(machine).stop()
    })
  }
  const lost = net.proxies.reduce((sum, proxy) => sum + proxy.repliesDropped(), 0)
  assert.ok(lost > 0, 'no reply was lost')
  const kills = `${backMs.length} kills before the reply (${lost} lost on the way)`
  reportReturnTimes(t, `${kills}, ${issued} certificates, no request signed twice`, backMs)
})
