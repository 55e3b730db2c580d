import * as os from 'node:os'

/** Of whoever runs this process, as the system knows them. */
export const userName = (): string => os.userInfo().username
