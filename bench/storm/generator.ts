// The machines of the storm, in a process of their own.

import { confirm, doorAt, enroll, newMachine, openChannel, shakeHands, type Door, type Machine } from '../machine.ts'
import { inParallel } from '../in-parallel.ts'

export type Order =
  | { kind: 'prepare'; nodeUrl: string; rootPem: string; secrets: readonly string[] }
  | { kind: 'handshakes'; count: number }
  | { kind: 'enroll' | 'confirm' | 'channel'; from: number; upTo: number }

export type Report = { kind: 'report'; done: number; ms: number; failures: readonly string[] }

const atOnce = 64
const steps = { enroll, confirm, channel: openChannel }
let door: Door | null = null
let machines: Machine[] = []

process.on('message', (order: Order) => {
  void obey(order).then((report) => process.send!(report))
})
process.on('disconnect', () => process.exit())

const obey = async (order: Order): Promise<Report> => {
  const started = performance.now()
  const failures: string[] = []
  const each = async (from: number, upTo: number, run: (at: number) => Promise<void>): Promise<Report> => {
    await inParallel(atOnce, upTo - from, (at) =>
      run(from + at).catch((error: unknown) => void failures.push(String(error))),
    )
    return { kind: 'report', done: upTo - from, ms: performance.now() - started, failures }
  }
  switch (order.kind) {
    case 'prepare':
      door = doorAt(order.nodeUrl, order.rootPem)
      machines = order.secrets.map((secret, at) => newMachine(`storm-${at}`, secret))
      return each(0, 0, async () => {})
    case 'handshakes':
      return each(0, order.count, () => shakeHands(door!))
    case 'enroll':
    case 'confirm':
    case 'channel':
      return each(order.from, order.upTo, (at) => steps[order.kind](door!, machines[at]!))
  }
}
