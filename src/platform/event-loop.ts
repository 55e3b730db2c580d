import { performance } from 'node:perf_hooks'

/** The share of the time since the last call in which the event loop of this thread had work. */
export const openLoopLoad = (): (() => number) => {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization
  }
}
