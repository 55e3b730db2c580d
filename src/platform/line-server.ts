// Lines over a Unix socket: one request a line, one answer a line. What a peer may cost is bounded whatever it sends: connections,
// the length of a line, requests under way, answers it does not read.

import * as fs from 'node:fs'
import * as net from 'node:net'
import * as path from 'node:path'
import { errno, type Owner } from './files.ts'
import { socketAnswers } from './http-server.ts'
import { openLineBuffer } from './line-buffer.ts'

export type LineBounds = {
  readonly connections: number
  /** In bytes. */
  readonly longestLine: number
  /** Of one connection. Further ones stay in the kernel until one of these is answered. */
  readonly underWay: number
}

export type LineHandlers = {
  /** Never rejects. */
  answer(line: string): Promise<string>
  /** What is sent to a peer before its connection is closed. */
  readonly tooLong: string
  readonly tooMany: string
}

export type LineServer = { close(): Promise<void> }

export type SocketPlace =
  /** Handed over by systemd, which has made it. */
  | { readonly kind: 'descriptor'; readonly fd: number }
  /** Made with mode 0600 for that user; null: for the user of this process. A dead one of that name is replaced. */
  | { readonly kind: 'path'; readonly path: string; readonly owner: Owner | null }

const mostUnread = 256 * 1024
/** Beyond these no answer is given: for a peer that opens them faster than they are closed. */
const connectionsToRefuse = 16

export const listenForLines = async (
  place: SocketPlace,
  bounds: LineBounds,
  handlers: LineHandlers,
): Promise<LineServer> => {
  const open = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    socket.on('error', () => socket.destroy())
    if (open.size >= bounds.connections) return refuseConnection(socket, handlers.tooMany)
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    readLines(socket, bounds, handlers)
  })
  server.maxConnections = bounds.connections + connectionsToRefuse
  try {
    await listenAt(server, place)
  } catch (error) {
    server.close()
    throw error
  }
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
  }
}

const refuseConnection = (socket: net.Socket, why: string): void => {
  socket.end(`${why}\n`)
  socket.once('finish', () => socket.destroy())
}

/** For a peer that does not read why its connection ends. */
const endWithinMs = 2000

const readLines = (socket: net.Socket, bounds: LineBounds, { answer, tooLong }: LineHandlers): void => {
  const lines = openLineBuffer()
  let underWay = 0
  let refused = false

  const isFull = (): boolean => underWay >= bounds.underWay || socket.writableLength > mostUnread
  const begin = (line: string): void => {
    underWay += 1
    void answer(line).then((said) => {
      underWay -= 1
      if (socket.writable) socket.write(`${said}\n`)
      goOn()
    })
  }
  const giveUp = (): void => {
    refused = true
    lines.clear()
    socket.pause()
    refuseConnection(socket, tooLong)
    setTimeout(() => socket.destroy(), endWithinMs).unref()
  }
  /** Takes out what is left of the bytes that were read, line by line, for as long as there is room. */
  const goOn = (): void => {
    if (refused || socket.destroyed) return
    while (!isFull()) {
      const line = lines.take()
      if (line === null) break
      if (line.length > bounds.longestLine) return giveUp()
      // A blank one counts as well: a peer that sends nothing else would keep this process from everything else.
      begin(line.toString('utf8'))
    }
    if (isFull()) return void socket.pause()
    if (lines.length() > bounds.longestLine) return giveUp()
    socket.resume()
  }
  socket.on('data', (chunk) => {
    if (refused) return
    lines.add(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    goOn()
  })
  socket.on('drain', goOn)
}

const listenAt = async (server: net.Server, place: SocketPlace): Promise<void> => {
  if (place.kind === 'descriptor') return listening(server, { fd: place.fd })
  const { path: file, owner } = place
  await removeDeadSocket(file)
  // For this user alone from its first moment on, and then for its owner: the mode of what belongs to another user could not be
  // changed without more rights.
  const before = process.umask(0o177)
  const bound = listening(server, { path: file })
  process.umask(before)
  await bound
  if (owner !== null) fs.lchownSync(file, owner.uid, owner.gid)
}

const removeDeadSocket = async (file: string): Promise<void> => {
  const found = fs.lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw new Error(`${file} is there and is not a socket`)
  if (await socketAnswers(file)) throw new Error(`another process answers on ${file}`)
  fs.rmSync(file)
}

const listening = (server: net.Server, at: { fd: number } | { path: string }): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(at, () => {
      server.off('error', reject)
      resolve()
    })
  })

/** The socket that systemd hands over (sd_listen_fds); null: none, or for another process. */
export const socketOfSystemd = (env: Readonly<Record<string, string | undefined>>): number | null =>
  env['LISTEN_PID'] === String(process.pid) && env['LISTEN_FDS'] === '1' ? 3 : null

export type LineConnection = {
  send(line: string): void
  /** Resolves when it is over, to why. */
  readonly closed: Promise<string>
  close(): void
}

/** Rejects with what the system says (ENOENT, EACCES, ECONNREFUSED). A longer line than that ends it. */
export const connectForLines = (
  file: string,
  longestLine: number,
  receive: (line: string) => void,
): Promise<LineConnection> =>
  new Promise((resolve, reject) => {
    const socket = net.connect({ path: path.resolve(file) })
    let text = ''
    let why = 'the connection was closed'
    const closed = new Promise<string>((over) => socket.once('close', () => over(why)))
    socket.setEncoding('utf8')
    socket.on('error', (error) => {
      why = errno(error) ?? error.message
      reject(error)
    })
    socket.on('data', (chunk: string) => {
      const lines = (text + chunk).split('\n')
      text = lines.pop() ?? ''
      if (text.length > longestLine) return void socket.destroy()
      for (const line of lines) receive(line)
    })
    socket.once('connect', () =>
      resolve({ send: (line) => void socket.write(`${line}\n`), closed, close: () => void socket.destroy() }),
    )
  })
