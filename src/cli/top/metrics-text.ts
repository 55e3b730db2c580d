// Metrics in the text format of Prometheus, as far as a plane writes it.

export type Sample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

export const parseMetrics = (text: string): Sample[] =>
  text.split('\n').flatMap((one) => {
    const [, name, labels = '', value] = line.exec(one) ?? []
    if (name === undefined || value === undefined || Number.isNaN(Number(value.replace('+Inf', 'Infinity')))) return []
    const found = [...labels.matchAll(label)].map(([, key = '', quoted = '']) => [key, unquoted(quoted)])
    return [
      {
        name,
        labels: Object.fromEntries(found) as Record<string, string>,
        value: Number(value.replace('+Inf', 'Infinity')),
      },
    ]
  })

const unquoted = (text: string): string =>
  text.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character))

/** Over all other labels: a later plane may tell them apart by more. Null: there is no such metric. */
export const totalOf = (samples: readonly Sample[], name: string): number | null => {
  const found = samples.filter((sample) => sample.name === name)
  return found.length === 0 ? null : found.reduce((total, { value }) => total + value, 0)
}

export const totalsBy = (samples: readonly Sample[], name: string, by: string): Record<string, number> => {
  const totals: Record<string, number> = {}
  for (const sample of samples) {
    const key = sample.name === name ? sample.labels[by] : undefined
    if (key !== undefined) totals[key] = (totals[key] ?? 0) + sample.value
  }
  return totals
}
