// The nodes of the demo: three kinds, each joining in its own way.

export type DemoNode = {
  readonly id: string
  readonly profile: 'gpu-cloud' | 'hpc-diskless' | 'mesh-paas'
  readonly mac: string
  readonly bmcSerial: string
}

/** Of ten nodes seven are GPU hosts, two are diskless and one belongs to the mesh. */
export const demoFleet = (count: number): DemoNode[] =>
  Array.from({ length: count }, (_, at) => {
    const kind = kinds[at % kinds.length] ?? kinds[0]
    const number = String(at + 1).padStart(3, '0')
    return { id: `${kind.prefix}-${number}`, profile: kind.profile, mac: macOf(at + 1), bmcSerial: `DEMO${number}` }
  })

const gpu = { prefix: 'gpu', profile: 'gpu-cloud' } as const
const hpc = { prefix: 'hpc', profile: 'hpc-diskless' } as const
const mesh = { prefix: 'mesh', profile: 'mesh-paas' } as const
const kinds = [gpu, gpu, gpu, hpc, gpu, gpu, mesh, gpu, hpc, gpu] as const

/** Locally administered, so no real card has it. */
const macOf = (number: number): string =>
  `02:4d:55:${[16, 8, 0].map((shift) => ((number >> shift) & 0xff).toString(16).padStart(2, '0')).join(':')}`
