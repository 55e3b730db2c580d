// Failures of the disk, under their own names: a machine whose disk is full or read-only is not "unreachable" (003).

import { classified, trouble, type Trouble } from '#agent/core/trouble.ts'

/** The error codes of a full, failing or read-only disk; any other error is a wrong setup of the folder. */
const ofTheDisk = ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO']

export type DiskFacts = {
  readonly errno: string
  readonly path: string
  readonly freeBytes: number
}

/** `what` says what it costs: "The renewal waits". */
export const diskTrouble = (facts: DiskFacts, what: string): Trouble =>
  classified(
    trouble(
      ofTheDisk.includes(facts.errno) ? 'disk_full' : 'disk_trouble',
      `${what}: ${reason(facts)}`,
      nextStep(facts),
    ),
    'disk_full',
    { errno: facts.errno, path: facts.path.slice(-128), free_bytes: facts.freeBytes },
  )

const reason = ({ errno, path, freeBytes }: DiskFacts): string => {
  switch (errno) {
    case 'ENOSPC':
      return `the disk of ${path} is full (${freeBytes} bytes are left).`
    case 'EDQUOT':
      return `the quota on the disk of ${path} is used up.`
    case 'EROFS':
      return `the disk of ${path} is read-only.`
    case 'EIO':
      return `the disk of ${path} does not work (input/output error).`
    case 'EACCES':
    case 'EPERM':
      return `${path} may not be written by this user.`
    default:
      return `${path} cannot be written (${errno}).`
  }
}

const nextStep = ({ errno, path }: DiskFacts): string => {
  switch (errno) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `Make room on the disk of ${path}; the agent then goes on`
    case 'EROFS':
      return `See why it is read-only (dmesg, findmnt -T ${path}), then: mount -o remount,rw; the agent then goes on`
    case 'EIO':
      return `Look at the disk (dmesg, smartctl); the agent goes on in memory, and a restart would lose what it holds`
    default:
      return `Make ${path} writable for the user of the agent; the agent keeps trying`
  }
}
