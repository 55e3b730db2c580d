/** Gives no identities: what it costs is the floor of any server on Node. */
export const nodeAlone = 'Node alone'
/** Signs and keeps, and does nothing else. */
export const smallestCa = 'least CA'

export type Mode = 'handshake' | 'new' | 'kept'

/** One round of one mode. */
export type Measured = {
  readonly done: number
  /** Wall clock. */
  readonly ms: number
  readonly cpuMs: number
  readonly clientCpuMs: number
}

export type Rounds = Record<Mode, Measured[]>

export const nothingMeasured = (): Rounds => ({ handshake: [], new: [], kept: [] })

/** What Muster should do of each rival's identities a CPU second. */
const aims: Readonly<Record<string, Readonly<Record<'new' | 'kept', number>>>> = {
  'step-ca': { new: 1.6, kept: 2.2 },
  Vault: { new: 1.5, kept: 2.0 },
  'one thread': { new: 1, kept: 1 },
}

const labels: Readonly<Record<Mode, string>> = {
  handshake: 'a bare handshake',
  new: 'an identity on a new connection',
  kept: 'an identity on a kept connection',
}

export const printSideBySide = (results: ReadonlyMap<string, Rounds>): void => {
  for (const [mode, label] of Object.entries(labels) as [Mode, string][]) {
    console.log(`\n${label}`)
    for (const [name, rounds] of results) {
      const all = sum(rounds[mode])
      const each = all.cpuMs / all.done
      console.log(
        `  ${name.padEnd(10)} ${each.toFixed(2)} ms of CPU (${(1000 / each).toFixed(0)} a CPU second), ` +
          `${((all.done / all.ms) * 1000).toFixed(0)} a second of wall clock; client ${(all.clientCpuMs / all.done).toFixed(2)} ms`,
      )
    }
  }
  const muster = results.get('Muster')!
  const bare = perIdentity(sum(muster.handshake))
  console.log(
    `\nMuster: ${(perIdentity(sum(muster.new)) / bare).toFixed(2)} bare handshakes an enrollment (aim: at most 1.8)`,
  )
  const oneThread = results.get('one thread')!
  const floors = { [nodeAlone]: 'A server on Node that only answers', [smallestCa]: 'The smallest CA on Node' }
  for (const [name, label] of Object.entries(floors)) {
    for (const mode of ['new', 'kept'] as const) {
      const floor = perIdentity(sum(results.get(name)![mode])) / perIdentity(sum(oneThread[mode]))
      console.log(`${label} costs ${floor.toFixed(2)} of Muster on one thread on ${mode} connections`)
    }
  }
  for (const [rival, aim] of [
    ['step-ca', aims['step-ca']],
    ['Vault', aims['Vault']],
  ] as const) {
    for (const mode of ['new', 'kept'] as const) {
      const times = median(ratios(results.get(rival)![mode], results.get(smallestCa)![mode], perIdentity))
      console.log(
        `The smallest CA on Node makes ${times.toFixed(2)} times the identities of ${rival} a CPU second on ${mode} ` +
          `connections (what Muster should do: ${aim?.[mode]})`,
      )
    }
  }
  for (const [name, rounds] of results) {
    const aim = aims[name]
    if (aim === undefined) continue
    for (const mode of ['new', 'kept'] as const) {
      const cpu = ratios(rounds[mode], muster[mode], perIdentity)
      const wall = ratios(rounds[mode], muster[mode], ({ ms, done }) => ms / done)
      console.log(
        `Muster to ${name.padEnd(10)} on ${mode.padEnd(4)} connections: ${median(cpu).toFixed(2)} times the identities a CPU second ` +
          `(${range(cpu)}; aim: ${aim[mode]}), ${median(wall).toFixed(2)} times a second of wall clock (${range(wall)}; aim: above 1)`,
      )
    }
  }
}

const perIdentity = ({ cpuMs, done }: Pick<Measured, 'cpuMs' | 'done'>): number => cpuMs / done

const sum = (rounds: readonly Measured[]): Measured =>
  rounds.reduce((all, one) => ({
    done: all.done + one.done,
    ms: all.ms + one.ms,
    cpuMs: all.cpuMs + one.cpuMs,
    clientCpuMs: all.clientCpuMs + one.clientCpuMs,
  }))

/** Of each round by itself: rounds are minutes apart, the two of one round are seconds apart. */
const ratios = (theirs: readonly Measured[], ours: readonly Measured[], cost: (one: Measured) => number): number[] =>
  theirs.map((their, at) => cost(their) / cost(ours[at]!))

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const half = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

const range = (values: readonly number[]): string =>
  `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`
