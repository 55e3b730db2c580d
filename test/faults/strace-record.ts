// Reads what `strace -f -ttt -yy` wrote, and answers one question: was the log flushed before the reply went out?

export type SystemCall = {
  readonly name: string
  /** Seconds, of the wall clock. */
  readonly at: number
  /** Arguments and result as printed; descriptors carry the file or connection behind them. */
  readonly text: string
  readonly result: number
  /** Lines of the record. A call another thread interrupted in print begins and ends on different ones. */
  readonly begins: number
  readonly ends: number
}

const whole = /^\d+ +(\d+\.\d+) (\w+)\((.*)\) += (-?\d+)/s
const unfinished = /^(\d+) +(\d+\.\d+) (\w+)\((.*) <unfinished \.\.\.>$/s
const resumed = /^(\d+) +\d+\.\d+ <\.\.\. \w+ resumed>(.*)\) += (-?\d+)/s

export const readStrace = (record: string): readonly SystemCall[] => {
  const calls: SystemCall[] = []
  const begun = new Map<string, Pick<SystemCall, 'name' | 'at' | 'text' | 'begins'>>()
  for (const [line, printed] of record.split('\n').entries()) {
    const [, at, name, text, result] = whole.exec(printed) ?? []
    if (at !== undefined && name !== undefined && text !== undefined) {
      calls.push({ name, at: Number(at), text, result: Number(result), begins: line, ends: line })
      continue
    }
    const [, thread, startedAt, started, front] = unfinished.exec(printed) ?? []
    if (thread !== undefined && started !== undefined && front !== undefined) {
      begun.set(thread, { name: started, at: Number(startedAt), text: front, begins: line })
      continue
    }
    const [, resumedThread, back, outcome] = resumed.exec(printed) ?? []
    const begin = begun.get(resumedThread ?? '')
    if (begin === undefined) continue
    calls.push({ ...begin, text: `${begin.text}${back}`, result: Number(outcome), ends: line })
  }
  return calls.toSorted((a, b) => a.begins - b.begins)
}

export type Question = {
  /** The caller's end of the connection. */
  readonly port: number
  /** When the caller sent its request: whatever is written to the connection after that is the reply. */
  readonly sinceMs: number
  /** The end of the log's file name. */
  readonly log: string
  /** Something only the commit in question writes. */
  readonly mark: string
}

export type Finding =
  'flushed before the reply' | 'no reply' | 'nothing written before the reply' | 'replied before the flush'

const writes = new Set(['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'sendto', 'sendmsg'])
const flushes = new Set(['fsync', 'fdatasync'])

export const flushedBeforeReply = (record: string, { port, sinceMs, log, mark }: Question): Finding => {
  const calls = readStrace(record).filter(({ at }) => at * 1000 >= sinceMs)
  const onLog = calls.filter(({ text }) => new RegExp(`^\\d+<[^>]*${RegExp.escape(log)}>`).test(text))
  const reply = calls.find(
    ({ name, text }) => writes.has(name) && new RegExp(`^\\d+<TCP[^>]*:\\[.*->.*:${port}\\]>`).test(text),
  )
  if (reply === undefined) return 'no reply'
  const written = onLog.filter(({ name, ends }) => writes.has(name) && ends < reply.begins)
  const last = written.at(-1)
  if (last === undefined || !written.some(({ text }) => text.includes(mark))) return 'nothing written before the reply'
  const flushed = onLog.some(
    ({ name, begins, ends, result }) => flushes.has(name) && result === 0 && begins > last.ends && ends < reply.begins,
  )
  return flushed ? 'flushed before the reply' : 'replied before the flush'
}
