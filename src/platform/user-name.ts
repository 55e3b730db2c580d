import * as os from 'node:os'

/** Of whoever runs this process, as the system knows them. */
export const userName = (): string => os.userInfo().username

/** The same for a record of who did something: a user without a name, as in many containers, is named by number. */
export const callerName = (): string => {
  try {
    return userName()
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}
