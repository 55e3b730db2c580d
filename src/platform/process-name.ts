import * as os from 'node:os'

/** Which process this is, for people who have several machines. */
export const processName = (): string => `${os.hostname()} ${process.pid}`
