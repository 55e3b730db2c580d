// What a vCluster asks of the machines in it: files, and services that run as long as they belong to it. Not to be confused
// with the WireGuard network (core/wireguard.ts), which seed 002 calls an overlay too.

export type Overlay = {
  readonly files: readonly OverlayFile[]
  readonly services: readonly Service[]
}

/** Lies below the folder the agent keeps for overlays, so that all files of a revision appear in one rename. */
export type OverlayFile = {
  /** Relative, of plain segments. */
  readonly path: string
  /** Permission bits, e.g. 0o644. */
  readonly mode: number
  readonly content: string
}

/** Run by systemd where there is one, else as a child the agent supervises (ruling 17). */
export type Service = {
  readonly name: string
  /** The program and its arguments, without a shell. `{overlay}` stands for the folder the files lie in. */
  readonly command: readonly string[]
}

export const noOverlay: Overlay = { files: [], services: [] }
