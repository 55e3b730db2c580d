// One open channel. From the moment it ends no frame of it is handled and none is written: the socket is closed without waiting for
// the other side. What was written before, with the reason at its end, is sent first where that takes no longer than a second. A
// replica whose lease is over writes nothing over it any more but that reason.

import type { WebSocket } from 'ws'
import type { NodePrincipal } from '#domain/core/principal.ts'
import type { AgentEvidence } from '#wire/core/agent-evidence.ts'
import { pingEveryMs, pongWithinMs, type PlaneFrame } from '#wire/channel/channel.ts'

/** How long a session may be silent before it is pinged, and before it is given up. */
export type Patience = { readonly pingEveryMs: number; readonly pongWithinMs: number }

/** A reader that has this much unread is not reading. */
export const mostBuffered = 256 * 1024

type Message = PlaneFrame extends infer F ? (F extends PlaneFrame ? Pick<F, 'type' | 'body'> : never) : never

export type SessionSocket = Pick<
  WebSocket,
  'bufferedAmount' | 'send' | 'ping' | 'pong' | 'pause' | 'resume' | 'terminate'
> & {
  /** Hands what was sent to the kernel, and destroys the socket then, or soon in any case. */
  cut(): void
}

export type Revisions = { readonly config: number; readonly trust: number }

export type SessionFacts = {
  readonly principal: NodePrincipal
  /** Which process and machine opened it; null from agents that do not say. */
  readonly evidence: AgentEvidence | null
  readonly number: number
  readonly openedAtMs: number
  /** Monotonic. */
  readonly lastReceivedMs: number
  /** Left out: that of a channel. */
  readonly patience?: Patience | undefined
  /** Of a long-poll that brings no evidence (`sourceProcess`); left out: the instance of the evidence. */
  readonly process?: string | undefined
  /** False: the lease of this replica is over, and the session has ended with all others. */
  readonly mayGoOn: () => boolean
  /** Called once, in the turn the session ends. */
  readonly onEnd: (session: Session) => void
}

export class Session {
  readonly number: number
  readonly principal: NodePrincipal
  readonly evidence: AgentEvidence | null
  /** The process that opened it; null: it may be any. */
  readonly process: string | null
  readonly openedAtMs: number
  readonly patience: Patience
  /** Wall clock: its certificate expires, or has been replaced and is drained. */
  endsAtMs: number
  /** Monotonic: by then it ends, since its node has a channel on another replica; null: it has not moved. */
  drainedAtMs: number | null = null
  /** Monotonic time of the last received frame. */
  lastReceivedMs: number
  /** Monotonic time of the ping that has not been answered yet. */
  pingedMs: number | null = null
  /** What the agent has or was sent; null before its hello. */
  revisions: Revisions | null = null
  /** What the agent has said in its hello that it understands. */
  offers: ReadonlySet<string> = new Set()
  /** Its hello asked for outputs in the configuration. */
  takesOutputs = false
  /** The revision of the roots of issuers that its agent has or was sent; null: it has not said, and does not know them. */
  issuerRoots: number | null = null
  /** The number of the statement of verifiers that its agent holds; null: it takes no tasks. */
  verifiers: number | null = null
  /** The node has said over the channel that it closes it. A connection that broke, or was cut, says no such thing. */
  closedByHolder = false
  readonly #socket: SessionSocket
  readonly #mayGoOn: () => boolean
  readonly #onEnd: (session: Session) => void
  #sent = 0
  #handled = 0
  #alive = true
  #waiting: (() => void)[] = []

  constructor(socket: SessionSocket, facts: SessionFacts) {
    this.#socket = socket
    this.#mayGoOn = facts.mayGoOn
    this.#onEnd = facts.onEnd
    this.principal = facts.principal
    this.evidence = facts.evidence
    this.process = facts.process ?? (facts.evidence === null ? null : facts.evidence.instance)
    this.number = facts.number
    this.openedAtMs = facts.openedAtMs
    this.patience = facts.patience ?? { pingEveryMs, pongWithinMs }
    this.endsAtMs = facts.principal.notAfterMs
    this.lastReceivedMs = facts.lastReceivedMs
  }

  get alive(): boolean {
    return this.#alive
  }

  /** What the other side has not read yet, as far as it is still here. */
  get unsentBytes(): number {
    return this.#socket.bufferedAmount
  }

  received(monotonicMs: number): void {
    this.lastReceivedMs = monotonicMs
    this.pingedMs = null
    const waiting = this.#waiting
    this.#waiting = []
    for (const answered of waiting) answered()
  }

  /** True when `sequence` is the next one of the control stream. */
  accept(sequence: number): boolean {
    if (sequence !== this.#handled + 1) return false
    this.#handled = sequence
    return true
  }

  send(message: Message): void {
    if (this.#takesMore()) this.#write(message)
  }

  ping(monotonicMs: number): void {
    if (!this.#takesMore()) return
    this.pingedMs ??= monotonicMs
    this.#socket.ping()
  }

  pong(payload: Buffer): void {
    if (this.#takesMore()) this.#socket.pong(payload)
  }

  /** Nothing more is read from the socket until `resume`, so that the other side has to wait. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    if (this.#alive) this.#socket.resume()
  }

  /** Calls back at the next sign of life. */
  onceReceived(run: () => void): void {
    this.#waiting.push(run)
  }

  /** Says why, if the other side still reads, and cuts the socket. */
  end(code: string, detail: string | null, retryAfterMs: number | null = null): void {
    const retry = retryAfterMs === null ? {} : { retry_after_ms: retryAfterMs }
    if (this.#hasRoom()) this.#write({ type: 'closing', body: { code, detail, ...retry } })
    this.#over(() => this.#socket.cut())
  }

  destroy(): void {
    this.#over(() => this.#socket.terminate())
  }

  #over(closeSocket: () => void): void {
    if (!this.#alive) return
    this.#alive = false
    this.#waiting = []
    closeSocket()
    this.#onEnd(this)
  }

  #write(message: Message): void {
    const frame = { stream: 0, seq: ++this.#sent, ack: this.#handled, ...message }
    this.#socket.send(JSON.stringify(frame))
  }

  #takesMore(): boolean {
    return this.#alive && this.#mayGoOn() && this.#hasRoom()
  }

  /** A slow reader is cut here. Pongs count too: an agent that pings and never reads would fill the memory with them. */
  #hasRoom(): boolean {
    if (this.#alive && this.#socket.bufferedAmount > mostBuffered) this.destroy()
    return this.#alive
  }
}
