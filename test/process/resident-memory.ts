import * as fs from 'node:fs'

/** Bytes of a process that are in memory now; zero where there is no /proc. */
export const residentBytes = (pid: number): number => {
  const file = `/proc/${pid}/status`
  if (!fs.existsSync(file)) return 0
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(fs.readFileSync(file, 'utf8'))?.[1] ?? 0) * 1024
}
