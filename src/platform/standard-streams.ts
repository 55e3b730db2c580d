// Standard input and output of a command.

export type TextOutput = {
  readonly isTerminal: boolean
  readonly columns: number
  write(text: string): void
  /** Resolves when what was written has left: a long export must not pile up in memory. */
  drained(): Promise<void>
}

export type TextInput = {
  readonly isTerminal: boolean
  /** All of it, up to `limit` characters; null when there is more. */
  readAll(limit: number): Promise<string | null>
}

type Stream = NodeJS.WriteStream & { readonly columns?: number }

/** Made on demand: a command says nothing on one of the two, and each takes a millisecond to open. */
const textOutput = (open: () => Stream, readerLeft: () => void): TextOutput => {
  let opened: Stream | null = null
  const stream = (): Stream => {
    if (opened !== null) return opened
    opened = open()
    opened.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      readerLeft()
    })
    return opened
  }
  return {
    get isTerminal() {
      return Boolean(stream().isTTY)
    },
    get columns() {
      return stream().columns || 100
    },
    write: (text) => void stream().write(text),
    drained: () =>
      stream().writableNeedDrain ? new Promise((resolve) => stream().once('drain', resolve)) : Promise.resolve(),
  }
}

/** Made on demand: merely looking at process.stdin opens it. */
const standardInput = (): TextInput => ({
  get isTerminal() {
    return Boolean(process.stdin.isTTY)
  },
  async readAll(limit) {
    let text = ''
    process.stdin.setEncoding('utf8')
    for await (const chunk of process.stdin) {
      text += String(chunk)
      if (text.length > limit) return null
    }
    return text
  },
})

export const standardStreams = (): { input: TextInput; out: TextOutput; err: TextOutput } => ({
  input: standardInput(),
  // The reader of a pipe may leave early (`| head`): that ends the command, quietly.
  out: textOutput(
    () => process.stdout,
    () => process.exit(0),
  ),
  // The reader of the log is gone, because Ctrl-C ended it too: the process still stops in order.
  err: textOutput(
    () => process.stderr,
    () => undefined,
  ),
})
