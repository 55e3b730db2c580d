// Ids are long: the beginning of one is enough where no other begins so.

import { usageFailure } from './failure.ts'

/** Of an id as lists show it. */
const wholeLength = 26

/** A prefix that no id has stays as it is: the plane says that there is none. */
export const idFor = async (given: string, what: string, known: () => Promise<readonly string[]>): Promise<string> => {
  if (given.length >= wholeLength) return given
  const [first, ...others] = (await known()).filter((id) => id.startsWith(given.toUpperCase()))
  if (first === undefined) return given
  if (others.length === 0) return first
  throw usageFailure(
    `${others.length + 1} ids begin with ${given}: ${[first, ...others].slice(0, 3).join(', ')}.`,
    `Give more of the id; see: muster ${what} list`,
  )
}
