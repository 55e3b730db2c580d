// A service for tests: writes which process it is and what it was given, and then a line a tenth of a second.

import * as fs from 'node:fs'
import * as path from 'node:path'

export type Heart = {
  readonly command: string[]
  /** Of the process that beat last; null: none did. */
  pid(): number | null
  /** Of every process that ever did, in order. */
  pids(): readonly number[]
  beats(): number
  /** Names of the environment it was given. */
  environment(): Readonly<Record<string, string>>
}

const script = 'env > "$1.env"; while :; do echo $$ >> "$1"; sleep 0.1; done'

/** `ignoring`: does not end when it is asked to. */
export const heart = (folder: string, name: string, ignoring = false): Heart => {
  const file = path.join(folder, `${name}.beats`)
  const read = (place: string): string[] =>
    fs.existsSync(place) ? fs.readFileSync(place, 'utf8').split('\n').filter(Boolean) : []
  const pids = (): readonly number[] => [...new Set(read(file).map(Number))]
  return {
    command: ['/bin/sh', '-c', `${ignoring ? "trap '' TERM; " : ''}${script}`, name, file],
    pids,
    pid: () => pids().at(-1) ?? null,
    beats: () => read(file).length,
    environment: () =>
      Object.fromEntries(
        read(`${file}.env`).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
      ),
  }
}

export const isAlive = (pid: number | null): boolean => {
  if (pid === null) return false
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.charAt(stat.lastIndexOf(')') + 2) !== 'Z'
  } catch {
    return false
  }
}
