// Why a program could not be started, for the person who wrote its name into a vCluster or an agent.toml.

import * as fs from 'node:fs'
import { errno } from './files.ts'

/** The error code stands last, for those who search for it. */
export const whyNotStarted = (error: unknown, program: string, folder: string): string => {
  const code = errno(error)
  switch (code) {
    case 'ENOENT':
      // Node says it of the program as well where the folder, or what a script is run by, is missing.
      if (!fs.existsSync(folder)) return `there is no folder ${folder}`
      if (program.includes('/') && fs.existsSync(program))
        return `${program} is there, but not the program that its first line names: ${code}`
      return `there is no program ${program} on this machine: ${code}`
    case 'EACCES':
      return `${program} may not be executed by its user: ${code}`
    default:
      return code ?? (error instanceof Error ? error.message : String(error))
  }
}
