import * as fs from 'node:fs'

/** Bytes of a process that are in memory now; zero where there is no /proc. */
export const residentBytes = (pid: number): number => bytesIn(pid, 'VmRSS')

/** The same without what it maps of files, such as its program: the system takes that back and brings it again as it pleases. */
export const ownResidentBytes = (pid: number): number => bytesIn(pid, 'RssAnon')

const bytesIn = (pid: number, field: string): number => {
  const file = `/proc/${pid}/status`
  if (!fs.existsSync(file)) return 0
  return Number(new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm').exec(fs.readFileSync(file, 'utf8'))?.[1] ?? 0) * 1024
}
