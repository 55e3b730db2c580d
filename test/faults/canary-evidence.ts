// All that can be seen of a run afterwards: what was printed, answered and delivered, the files, the processes.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Child } from '../process/child.ts'

export type Seen = {
  readonly place: string
  readonly bytes: Buffer
  /** At the end of the run, when everything that is used up has to be gone. */
  readonly last: boolean
  /** Of a file and of the folder it is in. */
  readonly modes: { readonly file: number; readonly folder: number } | null
}

export type Watched = Pick<Child, 'pid' | 'running' | 'stdout' | 'stderr'>

export type Evidence = {
  keep(place: string, text: string | Buffer): void
  /** All it prints until the end, and how it was started. */
  watch(name: string, child: Watched): void
  /** Every file below the root and every process that is watched, as they are now. */
  look(last?: boolean): void
  /** Every value in a database, whichever pages it lies on. */
  lookInto(database: string): void
  all(): readonly Seen[]
}

export const openEvidence = (root: string): Evidence => {
  const seen: Seen[] = []
  const children: { readonly name: string; readonly child: Watched }[] = []
  const keep = (place: string, bytes: Buffer, last = false, modes: Seen['modes'] = null): void =>
    void seen.push({ place, bytes, last, modes })

  const lookAtProcesses = (): void => {
    for (const { name, child } of children) {
      if (!child.running()) continue
      keep(`arguments of ${name}`, procFile(child.pid, 'cmdline'))
      keep(`environment of ${name}`, procFile(child.pid, 'environ'))
    }
  }
  return {
    keep: (place, text) => keep(place, Buffer.from(text)),
    watch: (name, child) => void children.push({ name, child }),
    look(last = false) {
      for (const file of filesBelow(root)) {
        const content = readIfThere(file)
        // An agent that lives on may be in the middle of replacing a file; at the last look nothing half written is left.
        const place = path.relative(root, last ? file : file.replace(/(\/(identity|programs)\.json)\.new$/, '$1'))
        if (content !== null) keep(`file ${place}`, content.bytes, last, content.modes)
      }
      lookAtProcesses()
    },
    lookInto(file) {
      const database = new DatabaseSync(file, { readOnly: true })
      try {
        const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all()
        for (const { name } of tables) {
          const rows = database.prepare(`SELECT * FROM "${String(name)}"`).all()
          const values = rows.flatMap((row) => Object.values(row)).map(bytesOf)
          keep(`rows of ${String(name)}`, Buffer.concat(values.flatMap((value) => [value, Buffer.from('\n')])), true)
        }
      } finally {
        database.close()
      }
    },
    all: () => [
      ...seen,
      ...children.flatMap(({ name, child }) =>
        (['stdout', 'stderr'] as const).map((stream) => ({
          place: `${stream} of ${name}`,
          bytes: Buffer.from(child[stream]()),
          last: true,
          modes: null,
        })),
      ),
    ],
  }
}

const bytesOf = (value: unknown): Buffer =>
  value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value))

const filesBelow = (folder: string): readonly string[] =>
  fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(full)
    return entry.isFile() ? [full] : []
  })

/** Null: it was replaced or removed in this very moment. */
const readIfThere = (file: string): { bytes: Buffer; modes: NonNullable<Seen['modes']> } | null => {
  try {
    const bytes = fs.readFileSync(file)
    const permissions = (name: string): number => fs.statSync(name).mode & 0o777
    return { bytes, modes: { file: permissions(file), folder: permissions(path.dirname(file)) } }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** Empty when it has ended meanwhile. */
const procFile = (pid: number, name: string): Buffer => {
  try {
    return fs.readFileSync(`/proc/${pid}/${name}`)
  } catch {
    return Buffer.alloc(0)
  }
}
