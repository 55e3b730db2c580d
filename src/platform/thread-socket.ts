import { Duplex } from 'node:stream'
import { acknowledgeFrom, costOf, type ToTlsThread } from './tls-thread-messages.ts'

/** As much as a small buffer of the kernel would take: the last words of a channel that is cut are on their way at once. */
const takenAtOnce = 16 * 1024

/** For what a peer has sent before it left. */
const readWithinMs = 5000

type Written = (error?: Error | null) => void

/**
 * The main thread's end of a connection that another thread accepted and decrypts. HTTP and channels use it as they use the
 * socket of TLS. What is written counts as unsent until the kernel has it, but for a little, and what is not read here is soon
 * not read there.
 */
export class ThreadSocket extends Duplex {
  /** HTTP takes the connection for a secure one by this. */
  readonly encrypted = true
  readonly remoteAddress: string
  readonly remotePort: number
  bytesRead = 0
  /** What the client presented in its handshake, DER as text; null: nothing. A small buffer would hold on to the pool it came from. */
  certificate: string | null = null
  readonly #id: number
  readonly #say: (message: ToTlsThread) => void
  /** What its thread was given and the kernel does not have, in order; with whom to tell, where it was too much to take at once. */
  readonly #unsent: { readonly length: number; readonly done: Written | null }[] = []
  #unsentLength = 0
  #unacknowledged = 0
  #hasEnded = false
  #idle: NodeJS.Timeout | null = null

  constructor(
    id: number,
    from: { readonly address: string; readonly port: number },
    say: (message: ToTlsThread) => void,
  ) {
    super({ allowHalfOpen: false, decodeStrings: false })
    this.#id = id
    this.#say = say
    this.remoteAddress = from.address
    this.remotePort = from.port
  }

  takeBytes(bytes: string): void {
    if (this.destroyed) return
    const chunk = Buffer.from(bytes, 'latin1')
    this.#idle?.refresh()
    this.bytesRead += chunk.length
    this.#unacknowledged += costOf(chunk)
    this.push(chunk)
    this.#acknowledge()
  }

  takeEnd(): void {
    if (!this.destroyed && !this.#hasEnded) this.push(null)
    this.#hasEnded = true
  }

  takeWritten(): void {
    this.#idle?.refresh()
    const sent = this.#unsent.shift()
    this.#unsentLength -= sent?.length ?? 0
    sent?.done?.()
  }

  /**
   * The other end is gone; `bytesRead` as its own socket counted them. What came before is read first, as of a socket: an agent that
   * says that it leaves often has left when that is read.
   */
  takeClosed(bytesRead: number): void {
    this.bytesRead = Math.max(this.bytesRead, bytesRead)
    if (this.readableLength === 0) return void this.destroy()
    this.takeEnd()
    const late = setTimeout(() => this.destroy(), readWithinMs).unref()
    this.once('end', () => this.destroy()).once('close', () => clearTimeout(late))
  }

  /** As a socket: what was written is sent first. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }

  /** As a socket: 'timeout' after so long without a byte either way; 0: never. HTTP limits by it how long a connection is kept. */
  setTimeout(ms: number): this {
    if (this.#idle !== null) clearTimeout(this.#idle)
    this.#idle = ms === 0 || this.destroyed ? null : setTimeout(() => this.emit('timeout'), ms).unref()
    return this
  }

  /**
   * A stream also asks for more while it has no reader, up to its high-water mark, which is of bytes: of records of one byte that
   * would be a great many. So reading acknowledges, and asking does not.
   */
  override _read(): void {}

  /** Everything that is not handed to a reader the moment it comes is read by this. */
  override read(size?: number): unknown {
    const chunk: unknown = super.read(size)
    this.#acknowledge()
    return chunk
  }

  override _write(chunk: string | Buffer, encoding: BufferEncoding, done: Written): void {
    if (typeof chunk === 'string') this.#send(chunk, encoding, done)
    else this.#send(chunk.toString('latin1'), 'latin1', done)
  }

  override _writev(
    chunks: readonly { readonly chunk: string | Buffer; readonly encoding: BufferEncoding }[],
    done: Written,
  ): void {
    let text = ''
    for (const { chunk, encoding } of chunks)
      text += (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk).toString('latin1')
    this.#send(text, 'latin1', done)
  }

  /** Done when all of it is sent: a socket is destroyed as soon as it has finished. */
  override _final(done: Written): void {
    this.#unsent.push({ length: 0, done })
    this.#say(['finish', this.#id])
  }

  /** What was pushed in the same turn is still emitted, as by any stream: a channel that is cut looks at nothing that comes. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.setTimeout(0)
    this.#say(['destroy', this.#id])
    for (const { done: waiting } of this.#unsent.splice(0)) waiting?.(error ?? new Error('the connection is closed'))
    done(error)
  }

  #send(text: string, encoding: BufferEncoding, done: Written): void {
    this.#idle?.refresh()
    this.#say(['write', this.#id, text, encoding])
    const isMuch = this.#unsentLength + text.length > takenAtOnce
    this.#unsent.push({ length: text.length, done: isMuch ? done : null })
    this.#unsentLength += text.length
    if (!isMuch) done()
  }

  /** All of it at once, when nothing waits here any more: HTTP and channels read until nothing is left, or pause and go on later. */
  #acknowledge(): void {
    if (this.readableLength > 0 || this.#unacknowledged < acknowledgeFrom) return
    this.#say(['read', this.#id, this.#unacknowledged])
    this.#unacknowledged = 0
  }
}
