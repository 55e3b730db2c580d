// Processes that start others: found, and ended, by their numbers. And the user a program is run as that refuses root.

import * as fs from 'node:fs'
import { eventually } from './eventually.ts'

export type OwnUser = {
  /** Null where this process has no other user to give. */
  readonly uid: number | null
  readonly gid: number | null
  /** Put before a command: it runs as that user, and ends when this process does, however that ends. */
  readonly wrapper: readonly string[]
}

export const unprivilegedUser = (): OwnUser => {
  const ends = ['setpriv', '--pdeathsig', 'TERM']
  if (process.getuid?.() !== 0) return { uid: null, gid: null, wrapper: ends }
  const users = fs
    .readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  if (user === undefined) throw new Error('there is no user to run it as')
  const [uid, gid] = [Number(user[2]), Number(user[3])]
  return { uid, gid, wrapper: [...ends, `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] }
}

/** These and every process they have started that is still below them, parents first. */
export const descendantsOf = (roots: readonly number[]): readonly number[] => {
  const parents = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), parent: parentOf(name) }))
  const found = [...roots]
  for (const pid of found)
    for (const { pid: child, parent } of parents) if (parent === pid && !found.includes(child)) found.push(child)
  return found
}

/** SIGKILL to all of them in one turn, and their end awaited. */
export const endAll = async (pids: readonly number[]): Promise<void> => {
  for (const pid of pids) kill(pid)
  await eventually('processes to end', () => pids.every((pid) => !isRunning(pid)), { withinMs: 15_000 })
}

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself meanwhile.
  }
}

/** One that has ended and was not yet asked about is not running. */
const isRunning = (pid: number): boolean => {
  const state = statusOf(String(pid), 'State')
  return state !== null && !state.startsWith('Z')
}

const parentOf = (pid: string): number | null => {
  const parent = statusOf(pid, 'PPid')
  return parent === null ? null : Number(parent)
}

const statusOf = (pid: string, field: string): string | null => {
  try {
    return new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? null
  } catch {
    return null
  }
}
