// Connections that other threads accept and decrypt, as sockets of this thread. A handshake is most of what a machine costs
// that comes in, and needs nothing the main thread knows; who may connect, and what a connection may do, is decided here.

import { createSecureContext } from 'node:tls'
import { holdPort, type SharedAddress } from './http-server.ts'
import { setProxiedCaller } from './caller-address.ts'
import { startOwnThread } from './own-thread.ts'
import type { Balancers } from './proxied-server.ts'
import { openThreadOutbox } from './thread-outbox.ts'
import { ThreadSocket } from './thread-socket.ts'
import { secureOptions, type TlsServerOptions } from './tls-server.ts'
import {
  type ConnectionNews,
  type FromTlsThread,
  type TlsThreadStart,
  type ToTlsThread,
} from './tls-thread-messages.ts'

export type TlsThreadsParts = {
  readonly threads: number
  readonly options: TlsServerOptions
  /** The most connections at a time. */
  readonly connections: number
  readonly balancers: Balancers | null
  readonly on: TlsThreadsListener
}

export type TlsThreadsListener = {
  /** Whether its handshake may begin; false: it has been destroyed. */
  admits(socket: ThreadSocket): boolean
  secured(socket: ThreadSocket): void
  failed(why: string): void
  /** There are as many connections as there may be, and one more has come. */
  full(): void
}

export type TlsThreads = {
  listen(at: SharedAddress): Promise<number>
  replaceIdentity(options: TlsServerOptions): void
  connections(): number
  /** Takes no more connections, and cuts those whose load balancer has not said yet whose they are. */
  stopListening(): void
  /** Cuts every connection that is left, and ends the threads. */
  close(): Promise<void>
}

export const openTlsThreads = (parts: TlsThreadsParts): TlsThreads => {
  const { threads: wanted, connections, balancers, on } = parts
  let { options } = parts
  const sockets = new Map<number, ThreadSocket>()
  const count = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const threads: Thread[] = []
  /** A load balancer's header is awaited. */
  const awaited = new Set<ThreadSocket>()
  let stopping = false

  const opened = (thread: Thread, id: number, address: string, port: number): void => {
    const socket = new ThreadSocket(id, { address, port }, thread.say)
    // Errors are the business of those who use it; here they only must not end the process.
    socket.on('error', () => {})
    if (stopping) return void socket.destroy()
    sockets.set(id, socket)
    socket.once('close', () => sockets.delete(id))
    if (balancers?.has(address) !== true) return begin(thread, id, socket)
    awaited.add(socket)
    socket.once('close', () => awaited.delete(socket))
    thread.say(['read header', id])
  }
  const begin = (thread: Thread, id: number, socket: ThreadSocket): void => {
    if (on.admits(socket)) thread.say(['begin', id])
  }
  const receive = (thread: Thread, message: FromTlsThread): void => {
    switch (message[0]) {
      case 'listening':
      case 'not listening':
        return thread.listened(message)
      case 'full':
        return on.full()
      case 'opened':
        return opened(thread, message[1], message[2], message[3])
      case 'closed':
        Atomics.sub(count, 0, 1)
        return receiveFor(thread, message)
      case 'header':
      case 'no header':
      case 'secured':
      case 'failed':
      case 'received':
      case 'ended':
      case 'written':
        return receiveFor(thread, message)
    }
  }
  const receiveFor = (thread: Thread, message: Exclude<ConnectionNews, readonly ['opened', ...unknown[]]>): void => {
    const id = message[1]
    const socket = sockets.get(id)
    // Destroyed here meanwhile, which its thread is about to read.
    if (socket === undefined) return
    switch (message[0]) {
      case 'header':
        awaited.delete(socket)
        setProxiedCaller(socket, message[2] ?? socket.remoteAddress)
        return begin(thread, id, socket)
      case 'no header':
        // Its end may have come in the same message, and is not another refusal.
        awaited.delete(socket)
        balancers?.refused(message[2], socket.remoteAddress, message[3])
        return void socket.destroy()
      case 'secured':
        socket.certificate = message[2]
        return on.secured(socket)
      case 'failed':
        return on.failed(message[2])
      case 'received':
        return socket.takeBytes(message[2])
      case 'ended':
        return socket.takeEnd()
      case 'written':
        return socket.takeWritten()
      case 'closed':
        // As of a balancer that only looks whether it is answered: it may be gone before its header was asked for.
        if (awaited.has(socket)) balancers?.refused('unread', socket.remoteAddress, 'it ended before its header')
        return socket.takeClosed(message[2])
    }
  }

  return {
    async listen({ host, port, shared }) {
      // Threads that share a port would also share it with another plane of this user, without any sign of it.
      if (!shared && wanted > 1) await (await holdPort(host, port)).release()
      // Not before: a start that fails must not leave threads behind that keep the process alive.
      while (threads.length < wanted)
        threads.push(startThread({ options, connections, count, firstId: threads.length, idStep: wanted }, receive))
      let chosen = port
      for (const thread of threads) chosen = await thread.listen(host, chosen, shared || wanted > 1)
      return chosen
    },
    replaceIdentity(identity) {
      // Throws here what would otherwise end a thread.
      createSecureContext(secureOptions(identity))
      options = identity
      threads.forEach(({ say }) => say(['identity', identity]))
    },
    connections: () => sockets.size,
    stopListening() {
      stopping = true
      for (const socket of awaited) socket.destroy()
      threads.forEach(({ say }) => say(['stop listening']))
    },
    async close() {
      for (const socket of sockets.values()) socket.destroy()
      await Promise.all(threads.map((thread) => thread.end()))
    },
  }
}

type Thread = {
  readonly say: (message: ToTlsThread) => void
  listen(host: string, port: number, shared: boolean): Promise<number>
  /** What it answers to `listen`. */
  listened(outcome: Extract<FromTlsThread, readonly ['listening' | 'not listening', ...unknown[]]>): void
  end(): Promise<unknown>
}

const startThread = (start: TlsThreadStart, receive: (thread: Thread, message: FromTlsThread) => void): Thread => {
  const worker = startOwnThread('tls-thread', 'tls', start)
  let answer: { resolve(port: number): void; reject(error: Error): void } | null = null
  let ending = false
  const thread: Thread = {
    say: openThreadOutbox((messages) => worker.postMessage(messages)),
    listen: (host, port, shared) =>
      new Promise((resolve, reject) => {
        answer = { resolve, reject }
        thread.say(['listen', host, port, shared])
      }),
    listened(outcome) {
      if (outcome[0] === 'listening') answer?.resolve(outcome[1])
      else answer?.reject(Object.assign(new Error(outcome[2]), outcome[1] === null ? {} : { code: outcome[1] }))
      answer = null
    },
    end() {
      ending = true
      return worker.terminate()
    },
  }
  worker.on('message', (messages: readonly FromTlsThread[]) => {
    for (const message of messages) receive(thread, message)
  })
  // What a thread throws is a bug, and its connections are lost: the process ends, as for a bug of its own.
  worker.on('error', (error) => {
    throw error
  })
  worker.on('exit', (code) => {
    if (!ending) throw new Error(`a thread for TLS ended with ${code}`)
  })
  return thread
}
