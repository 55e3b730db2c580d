import * as net from 'node:net'

/** An IPv4 or IPv6 address, as opposed to a name. */
export const isIP = (text: string): boolean => net.isIP(text) !== 0
