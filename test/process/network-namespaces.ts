// Machines of one network, as far as the network goes: a namespace each, all on one bridge in a namespace of its own, so that
// nothing of it is seen outside. Asks for the peers `ip` and `netns` first.

import { execFile, execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { cleanup, type Scope } from './cleanup.ts'
import { eventually } from './eventually.ts'

export type Machine = {
  /** On the bridge. */
  readonly address: string
  /** To be put in front of a command that is to run there; keeps its pid. */
  readonly wrapper: readonly string[]
  /** Unique on the real machine: sockets of wireguard-go are found by this name in a folder that all of them share. */
  readonly wireguard: string
  /** Its cable pulled, and put back. */
  cut(): void
  heal(): void
  run(command: string, ...args: string[]): Promise<{ readonly code: number; readonly stdout: string }>
}

export type Networks = {
  readonly hub: Machine
  /** `address`: of its own choice, in a network of 256 of them; left out: the next one beside the hub's. */
  machine(address?: string): Machine
}

const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })

export const openNetworks = (t: Scope): Networks => {
  const mark = `mt${process.pid.toString(36)}`
  let machines = 0
  const namespace = (name: string): void => {
    ip('netns', 'add', name)
    cleanup(t, () => remove(name))
    ip('-n', name, 'link', 'set', 'lo', 'up')
  }
  const hub = `${mark}-hub`
  namespace(hub)
  ip('-n', hub, 'link', 'add', 'bridge', 'type', 'bridge')
  ip('-n', hub, 'address', 'add', '198.18.0.1/24', 'dev', 'bridge')
  ip('-n', hub, 'link', 'set', 'bridge', 'up')
  const machineAt = (name: string, address: string, wireguard: string): Machine => ({
    address,
    wireguard,
    wrapper: ['ip', 'netns', 'exec', name],
    cut: () => ip('-n', name, 'link', 'set', 'cable', 'down'),
    heal: () => ip('-n', name, 'link', 'set', 'cable', 'up'),
    run: (command, ...args) =>
      new Promise((resolve) => {
        execFile('ip', ['netns', 'exec', name, command, ...args], { timeout: 10_000 }, (error, stdout) =>
          resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout }),
        )
      }),
  })
  return {
    hub: machineAt(hub, '198.18.0.1', `${mark}h`),
    machine: (chosen) => {
      const number = ++machines
      const name = `${mark}-${number}`
      const address = chosen ?? `198.18.0.${10 + number}`
      const wireguard = `${mark}w${number}`
      // What a wireguard-go leaves that was killed.
      cleanup(t, () => fs.rmSync(`/var/run/wireguard/${wireguard}.sock`, { force: true }))
      namespace(name)
      ip('link', 'add', 'cable', 'netns', name, 'type', 'veth', 'peer', 'name', `port${number}`, 'netns', hub)
      ip('-n', hub, 'link', 'set', `port${number}`, 'master', 'bridge', 'up')
      ip('-n', name, 'address', 'add', `${address}/24`, 'dev', 'cable')
      ip('-n', name, 'link', 'set', 'cable', 'up')
      return machineAt(name, address, wireguard)
    },
  }
}

/** Whatever still runs in it is ended: the namespace lives as long as that. */
const remove = async (name: string): Promise<void> => {
  const pids = (): number[] =>
    execFileSync('ip', ['netns', 'pids', name], { encoding: 'utf8' }).split('\n').filter(Boolean).map(Number)
  for (const pid of pids()) if (fs.existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL')
  await eventually(`nothing to run in ${name}`, () => pids().length === 0)
  ip('netns', 'delete', name)
}
