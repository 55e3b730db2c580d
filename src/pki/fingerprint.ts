import { hash } from 'node:crypto'

/** SHA-256 of a certificate, lower-case hex: how people and join strings name a root. */
export const fingerprint = (der: Uint8Array): string => hash('sha256', der, 'hex')
