// The leaves of one output on one node, in one epoch.

import type { NodeId, Slot } from '#domain/core/node.ts'

export type Program = {
  readonly node: NodeId
  readonly epoch: number
  readonly output: string
  /** Null: it was asked for and never signed, or it has ended. */
  readonly current: ProgramLeaf | null
  /** The one before, which the program on the host may still use. */
  readonly former: ProgramLeaf | null
  /** Nothing is signed for it any more. */
  readonly ended: { readonly atMs: number; readonly why: string } | null
}

/** `names`: its DNS names and addresses, as `NameClaim` writes them. */
export type ProgramLeaf = Slot & { readonly names: readonly string[] }

export const programKey = ({ node, epoch, output }: Pick<Program, 'node' | 'epoch' | 'output'>): string =>
  `${node}/${epoch}/${output}`
