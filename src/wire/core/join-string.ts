// The join string: all a machine needs to find the plane, to verify it, and to prove that it may join. It has no spaces, so that
// it survives shells, environment files and cloud-init.
//
//     muster1,<url>,<domain>,sha256:<root fingerprint>,<secret or ->
//
// A plane whose certificates carry its mark says so by a path that leads nowhere: `https://plane.example:8443/marked/..`. For an
// agent that does not know the mark it is the same address (docs/decisions/plane-mark.md).

import { markedWord } from '#domain/core/plane-mark.ts'
import { tokenSecretShape } from '#domain/core/token.ts'

export type JoinString = {
  readonly url: string
  readonly domain: string
  /** SHA-256 of the root certificate, lower-case hex. */
  readonly rootFingerprint: string
  /** Null for machines that join by their hardware identity. */
  readonly secret: string | null
  /** The plane carries its mark: a server without one is not the plane. */
  readonly marked: boolean
}

const markedPath = `/${markedWord}/..`

export const formatJoinString = ({ url, domain, rootFingerprint, secret, marked }: JoinString): string => {
  const address = marked ? url.replace(/\/+$/, '') + markedPath : url
  return ['muster1', address, domain, `sha256:${rootFingerprint}`, secret ?? '-'].join(',')
}

/** Null when it is not a join string; the reason would risk repeating a secret. */
export const parseJoinString = (text: string): JoinString | null => {
  const [version, address, domain, root, secret, ...rest] = text.trim().split(',')
  const marked = address?.endsWith(markedPath) === true
  const url = marked ? address.slice(0, -markedPath.length) : address
  if (version !== 'muster1' || url === undefined || domain === undefined || root === undefined) return null
  if (secret === undefined || rest.length > 0) return null
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:') return null
  if (!domainNameShape.test(domain) || !/^sha256:[0-9a-f]{64}$/.test(root)) return null
  if (secret !== '-' && !tokenSecretShape.test(secret)) return null
  return { url, domain, rootFingerprint: root.slice(7), secret: secret === '-' ? null : secret, marked }
}

/** On any other machine that address leads to that machine itself. */
export const leadsToItself = (url: string): boolean => {
  const host = new URL(url).hostname
  return (
    /(^|\.)localhost$/.test(host) || /^127(\.\d{1,3}){3}$/.test(host) || ['[::1]', '0.0.0.0', '[::]'].includes(host)
  )
}

/** A trust domain: lower-case DNS labels. */
export const domainNameShape =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/
