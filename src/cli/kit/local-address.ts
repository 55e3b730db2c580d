// A plane that is called localhost is of no use to other machines: said where something is made that is carried to one.

import { leadsToItself, parseJoinString } from '#wire/core/join-string.ts'
import { exitCodes } from './exit-codes.ts'
import { Failure } from './failure.ts'

/** How the plane gets an address for other machines. */
const reachableStep = (url: string): string =>
  `start the plane with a name or address that other machines reach it by: muster plane --node-listen 0.0.0.0:${portOf(url)} --server-name NAME`

/** The one it has now. */
export const portOf = (url: string): string => new URL(url).port || '443'

/** The address in a join string that leads every other machine to itself; null: it does not. */
export const localAddressIn = (join: string): string | null => {
  const parsed = parseJoinString(join)
  return parsed !== null && leadsToItself(parsed.url) ? parsed.url : null
}

export const localWarning = (url: string): string =>
  `warning: ${url} means this machine itself wherever it is used: only an agent on the machine of the plane can join with this. For another machine, ${reachableStep(url)}; then make a new one`

export const refuseLocal = (url: string): Failure =>
  new Failure({
    exit: exitCodes.refused,
    code: 'JOIN_ADDRESS_LOCAL',
    sentence: `A bundle would send another machine to ${url}, which is that machine itself.`,
    next: `${reachableStep(url).replace(/^s/, 'S')}; for an agent on the machine of the plane: --this-machine`,
  })
