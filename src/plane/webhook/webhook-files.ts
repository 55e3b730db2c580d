// What the files of a webhook hold: the secret that deliveries are signed with, and the roots its receiver is verified by.

import { allFromPem } from '#pki/pem.ts'
import { errno, othersMayRead, readFileIfAny } from '#platform/files.ts'
import type { WebhookTarget } from './webhook-target.ts'

export type WebhookFiles = { readonly secret: string; readonly ca: string | null }

const shortestSecret = 16
const longestSecret = 4096

/** A text says what is wrong, and repeats nothing that is secret. */
export const readWebhookFiles = ({ secretFile, caFile }: WebhookTarget): WebhookFiles | string => {
  try {
    const secret = readFileIfAny(secretFile)?.trim() ?? null
    if (secret === null) return `--alert-webhook-secret-file: there is no file ${secretFile}`
    if (othersMayRead(secretFile)) return `others may read ${secretFile}: chmod 600`
    if (secret.length < shortestSecret || secret.length > longestSecret)
      return `the secret in ${secretFile} has to have ${shortestSecret} characters or more`
    const ca = caFile === null ? null : readFileIfAny(caFile)
    if (caFile !== null && (ca === null || allFromPem('CERTIFICATE', ca) === null))
      return `--alert-webhook-ca: ${caFile} holds no certificates in PEM, or something besides`
    return { secret, ca }
  } catch (error) {
    return `a file of the webhook cannot be read: ${error instanceof Error ? error.message : errno(error)}`
  }
}
