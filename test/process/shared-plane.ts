// One plane for all tests of a file: started before the first, stopped after the last.

import { after, before } from 'node:test'
import type { Scope } from './cleanup.ts'
import { startPlane, type Plane, type PlaneOptions } from './start-plane.ts'

export type Shared<T> = () => T

/** To be called where the file, or a `describe` in it, declares its tests. */
export const sharedPlane = (options: PlaneOptions = {}): Shared<Plane> => shared((scope) => startPlane(scope, options))

export const shared = <T extends object>(make: (scope: Scope) => Promise<T>): Shared<T> => {
  let made: T | null = null
  let takeDown: () => unknown = () => {}
  // `cleanup` registers one step for a scope and keeps its own order below it.
  const scope = { after: (run: () => unknown) => void (takeDown = run) } as Scope
  before(async () => void (made = await make(scope)))
  after(() => takeDown())
  return () => {
    if (made === null) throw new Error('asked for before the first test')
    return made
  }
}
