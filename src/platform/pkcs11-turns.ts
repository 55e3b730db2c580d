// Who is inside a PKCS#11 module, for all threads of a process: C_Finalize frees what the calls of other threads stand on, and a call that hangs stays
// inside. So a thread ends the module only while no other one is in it.

const [lock, insideAll] = [0, 1]
const [number, insideOwn] = [0, 1]

/** Of the threads of one module. */
export const sharedByThreads = (): Int32Array => new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT))

/** `id`: above 0, and of no other thread of the module. */
export const ownOfThread = (id: number): Int32Array => {
  const own = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT))
  own[number] = id
  return own
}

export type ModuleTurns = {
  /** A call of the module. */
  inside<R>(call: () => R): R
  /** Runs while no other thread begins a call. Throws where one that holds the lock does not give it back in time. */
  locked<R>(run: () => R): R
  /** Runs likewise, and not at all while another thread is inside. */
  ifAlone(run: () => void): void
}

/** C_Initialize and C_Finalize of another thread may look at hardware. */
const lockWithinMs = 8000

export const openModuleTurns = (shared: Int32Array, own: Int32Array): ModuleTurns => {
  const id = own[number] ?? 0
  const locked = <R>(run: () => R): R => {
    for (let holder = 0; (holder = Atomics.compareExchange(shared, lock, 0, id)) !== 0;)
      if (Atomics.wait(shared, lock, holder, lockWithinMs) === 'timed-out')
        throw new Error('another thread is starting or ending the module, and does not return')
    try {
      return run()
    } finally {
      release(shared, id)
    }
  }
  return {
    locked,
    inside(call) {
      locked(() => {
        Atomics.store(own, insideOwn, 1)
        Atomics.add(shared, insideAll, 1)
      })
      try {
        return call()
      } finally {
        leave(shared, own)
      }
    },
    ifAlone: (run) =>
      locked(() => {
        if (Atomics.load(shared, insideAll) === 0) run()
      }),
  }
}

const release = (shared: Int32Array, id: number): void => {
  Atomics.compareExchange(shared, lock, id, 0)
  Atomics.notify(shared, lock)
}

const leave = (shared: Int32Array, own: Int32Array): void => {
  if (Atomics.exchange(own, insideOwn, 0) === 1) Atomics.sub(shared, insideAll, 1)
}

/** A thread was terminated, and its last call has returned: it could not leave by itself. */
export const leaveFor = (shared: Int32Array, own: Int32Array): void => {
  leave(shared, own)
  release(shared, own[number] ?? 0)
}
