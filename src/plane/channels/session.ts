// One open channel. It is alive until something ends it, and from that very moment on no frame of it is handled: the
// socket is destroyed, whatever the other side does about it.

import type { WebSocket } from 'ws'
import type { NodePrincipal } from '#domain/principal.ts'
import type { PlaneFrame } from '#wire/channel.ts'

/** A reader that has this much unread is not reading. */
const mostBuffered = 256 * 1024

type Message = PlaneFrame extends infer F ? (F extends PlaneFrame ? Pick<F, 'type' | 'body'> : never) : never

export class Session {
  readonly number: number
  readonly principal: NodePrincipal
  readonly openedAtMs: number
  /** Monotonic time something was last heard. */
  heardMs: number
  /** Monotonic time of the ping that has not been answered yet. */
  pingedMs: number | null = null
  readonly #socket: WebSocket
  #sent = 0
  #handled = 0
  #alive = true
  #onPong: (() => void)[] = []

  constructor(socket: WebSocket, principal: NodePrincipal, number: number, openedAtMs: number, heardMs: number) {
    this.#socket = socket
    this.principal = principal
    this.number = number
    this.openedAtMs = openedAtMs
    this.heardMs = heardMs
  }

  get alive(): boolean {
    return this.#alive
  }

  heard(monotonicMs: number): void {
    this.heardMs = monotonicMs
    this.pingedMs = null
    const waiting = this.#onPong
    this.#onPong = []
    for (const answered of waiting) answered()
  }

  /** True when `sequence` is the next one of the control stream. */
  accept(sequence: number): boolean {
    if (sequence !== this.#handled + 1) return false
    this.#handled = sequence
    return true
  }

  send(message: Message): void {
    if (!this.#alive) return
    if (this.#socket.bufferedAmount > mostBuffered) return this.destroy()
    const frame = { stream: 0, seq: ++this.#sent, ack: this.#handled, ...message }
    this.#socket.send(JSON.stringify(frame))
  }

  ping(monotonicMs: number): void {
    if (!this.#alive) return
    if (this.#socket.bufferedAmount > mostBuffered) return this.destroy()
    this.pingedMs ??= monotonicMs
    this.#socket.ping()
  }

  /** Calls back at the next sign of life. */
  onceHeard(run: () => void): void {
    this.#onPong.push(run)
  }

  /** Says why, as far as the socket takes it at once, and destroys it. */
  end(code: string, detail: string | null): void {
    if (!this.#alive) return
    this.send({ type: 'closing', body: { code, detail } })
    this.destroy()
  }

  destroy(): void {
    this.#alive = false
    this.#onPong = []
    this.#socket.terminate()
  }
}
