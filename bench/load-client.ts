// The machines of a benchmark, in a process of their own (bench/client, in Go).

import { spawn } from 'node:child_process'
import * as path from 'node:path'
import { createInterface } from 'node:readline'
import { cleanup, type Scope } from '../test/process/cleanup.ts'
import { within } from '../test/process/eventually.ts'
import { builtHere } from '../test/peers/built-peer.ts'

/** How a server gives identities, and what a machine needs for it. */
export type Target = { readonly address: string; readonly name: string; readonly roots: string } & (
  | { readonly server: 'muster' }
  | { readonly server: 'step-ca'; readonly provisioner: StepProvisioner }
  | { readonly server: 'vault'; readonly token: string; readonly path: string }
)

export type StepProvisioner = Readonly<Record<'name' | 'kid' | 'audience' | 'd', string>>

export type Order =
  | ({ readonly do: 'connect' } & Target)
  | { readonly do: 'machines'; readonly names: readonly string[]; readonly secrets?: readonly string[] }
  | { readonly do: 'handshakes'; readonly count: number; readonly at_once: number }
  | {
      readonly do: 'enroll'
      readonly from: number
      readonly to: number
      readonly at_once: number
      readonly keep: boolean
    }
  | {
      readonly do: 'confirm' | 'renew' | 'channel'
      readonly from: number
      readonly to: number
      readonly at_once: number
    }
  | { readonly do: 'check' | 'close'; readonly from: number; readonly to: number }

/** `failures`: the first few; null: none. */
export type Report = { readonly done: number; readonly ms: number; readonly failures: readonly string[] | null }

export type LoadClient = {
  readonly pid: number
  ask(order: Order): Promise<Report>
  /** Throws where one of these machines was not given a certificate for its key. To be called outside of what is measured. */
  check(from: number, to: number): Promise<void>
}

/** Enough for a machine that is busy with other things, and an end all the same. */
const answersWithinMs = 1_200_000

export const startLoadClient = async (t: Scope): Promise<LoadClient> => {
  const child = spawn(await builtHere(path.join(import.meta.dirname, 'client')), {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  cleanup(t, () => void child.kill())
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`the load client ended with ${code}`)))
  })
  ended.catch(() => {})
  const lines = createInterface({ input: child.stdout })
  const ask = (order: Order): Promise<Report> => {
    const answered = new Promise<Report>((resolve) => lines.once('line', (line) => resolve(JSON.parse(line) as Report)))
    child.stdin.write(`${JSON.stringify(order)}\n`)
    return within(order.do, answersWithinMs, Promise.race([answered, ended]))
  }
  return {
    pid: child.pid!,
    ask,
    async check(from, to) {
      const { failures } = await ask({ do: 'check', from, to })
      if (failures !== null) throw new Error(`an answer is not what it should be: ${failures[0]}`)
    },
  }
}
