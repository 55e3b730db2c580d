// The join string: all a machine needs to find the plane, to verify it, and to prove that it may join. It has no spaces, so that
// it survives shells, environment files and cloud-init.
//
//     muster1,<url>,<domain>,sha256:<root fingerprint>,<secret or ->

import { tokenSecretShape } from '#domain/enrollment/token.ts'

export type JoinString = {
  readonly url: string
  readonly domain: string
  /** SHA-256 of the root certificate, lower-case hex. */
  readonly rootFingerprint: string
  /** Null for machines that join by their hardware identity. */
  readonly secret: string | null
}

export const formatJoinString = (join: JoinString): string =>
  ['muster1', join.url, join.domain, `sha256:${join.rootFingerprint}`, join.secret ?? '-'].join(',')

/** Null when it is not a join string; the reason would risk repeating a secret. */
export const parseJoinString = (text: string): JoinString | null => {
  const [version, url, domain, root, secret, ...rest] = text.trim().split(',')
  if (version !== 'muster1' || url === undefined || domain === undefined || root === undefined) return null
  if (secret === undefined || rest.length > 0) return null
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:') return null
  if (!domainNameShape.test(domain) || !/^sha256:[0-9a-f]{64}$/.test(root)) return null
  if (secret !== '-' && !tokenSecretShape.test(secret)) return null
  return { url, domain, rootFingerprint: root.slice(7), secret: secret === '-' ? null : secret }
}

/** A trust domain: lower-case DNS labels. */
export const domainNameShape =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/
