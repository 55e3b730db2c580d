// The metrics of a registry as they are declared, whether or not they have a value yet.

import type { Registry } from 'prom-client'

/**
 * `domain`: every replica shows the same. `replica`: each shows its own part, and the sum over replicas is the whole. `process`: of
 * the process, and of no use in sums.
 */
export type MetricScope = 'domain' | 'replica' | 'process'

export type DeclaredMetric = {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly labels: readonly string[]
  readonly scope: MetricScope
}

/** What prom-client keeps of every metric and leaves out of its types. */
type Kept = {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly labelNames: readonly string[]
}

export const declaredIn = (registry: Registry, scope: MetricScope): readonly DeclaredMetric[] =>
  (registry.getMetricsAsArray() as unknown as readonly Kept[]).map(({ name, type, help, labelNames }) => ({
    name,
    type,
    help,
    labels: labelNames,
    scope,
  }))
