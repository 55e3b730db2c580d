// Chains of certificates a server must not be trusted with, each saying what is wrong with it and what the verdict has
// to be. `rootFingerprint` and `host` are those the agent was told.

import { issuingSpec, leafSpec, rootSpec } from '#pki/authority-certificates.ts'
import type { CertificateSpec } from '#pki/certificate.ts'
import { smallNumber } from '#pki/der-writer.ts'
import { generateKey, type PrivateKey } from '#pki/keys.ts'
import { oids } from '#pki/oids.ts'
import type { ChainProblem } from '#pki/verify-chain.ts'
import {
  authority,
  day,
  type Held,
  hierarchy,
  hold,
  host,
  issuingCa,
  leaf,
  nodeOrder,
  nowMs,
  serial,
  serverOrder,
} from './pki-hierarchy.ts'
import { extension, withExtensions, without } from './pki-rewrite-certificate.ts'

export type HostileChain = {
  readonly wrong: string
  readonly code: ChainProblem
  readonly chain: readonly Uint8Array[]
  readonly rootFingerprint: string
  readonly host: string
  readonly nowMs: number
}

const ders = (...held: Held[]): Uint8Array[] => held.map((one) => one.certificate.der)

export const hostileChains = (): HostileChain[] => {
  const good = hierarchy('p256', nowMs)
  const { root, domainCa, issuing } = good
  const key = generateKey('p256')
  const server = leaf(key, serverOrder(key, {}), issuing)
  const usual = { rootFingerprint: root.certificate.sha256, host, nowMs }
  const above = ders(issuing, domainCa, root)
  const is = (wrong: string, code: ChainProblem, chain: readonly Uint8Array[]): HostileChain => ({
    ...usual,
    wrong,
    code,
    chain,
  })

  /** A leaf made like the good one, then changed. */
  const otherLeaf = (change: (spec: CertificateSpec) => CertificateSpec, issuer: Held): Uint8Array =>
    hold(key, change(leafSpec(serverOrder(key, {}), issuer.certificate, serial())), issuer.key).certificate.der
  /** An intermediate made like the good one, then changed, with a leaf below it. */
  const otherIssuing = (change: (spec: CertificateSpec) => CertificateSpec, signer: PrivateKey): Uint8Array[] => {
    const caKey = generateKey('p256')
    const spec = issuingSpec(authority(caKey, 1000 * day, nowMs), root.certificate)
    const ca = hold(caKey, change(spec), signer)
    const below = otherLeaf((same) => ({ ...same, notBeforeMs: nowMs - day, notAfterMs: nowMs + day }), ca)
    return [below, ca.certificate.der, root.certificate.der]
  }
  const extensions = (change: Partial<CertificateSpec['extensions']>) => (spec: CertificateSpec) => ({
    ...spec,
    extensions: { ...spec.extensions, ...change },
  })

  const stranger = hierarchy('p256', nowMs)
  const unrelatedLeaf = leaf(key, serverOrder(key, {}), stranger.issuing)
  const node = leaf(key, nodeOrder(key, { dnsSans: [host] }), issuing)
  const tooDeep = issuingCa('p256', { ...issuing, certificate: { ...issuing.certificate, pathLen: 1 } }, nowMs)
  const rootName = rootSpec({ ...authority(root.key, day, nowMs), pathLen: 2 }).subject
  const impostorRoot = hold(
    stranger.root.key,
    { ...rootSpec({ ...authority(stranger.root.key, day, nowMs), pathLen: 2 }), subject: rootName, issuer: rootName },
    stranger.root.key,
  )
  const flipped = Uint8Array.from(server.certificate.der)
  flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1
  const unknownCritical = withExtensions(server.certificate.der, issuing.key, (all) => [
    ...all,
    extension('1.2.3.4', true, smallNumber(1)),
  ])

  return [
    // the root
    is('it is empty', 'malformed', []),
    is('one of its certificates is cut short', 'malformed', [server.certificate.der.subarray(0, -1), ...above]),
    is('it is by a stranger with a hierarchy just like ours', 'no-root', [
      unrelatedLeaf.certificate.der,
      ...ders(stranger.issuing, stranger.domainCa, stranger.root),
    ]),
    is(
      'it is a self-signed leaf',
      'no-root',
      ders(
        hold(
          key,
          {
            ...leafSpec(serverOrder(key, {}), issuing.certificate, serial()),
            issuer: { cn: host, o: 'example.test', ou: 'control-plane' },
          },
          key,
        ),
      ),
    ),
    is('the root is left out', 'no-root', ders(server, issuing, domainCa)),
    is('something stands after the root', 'no-root', [...ders(server), ...above, server.certificate.der]),
    is('our root is put behind a stranger’s chain', 'name-mismatch', [
      unrelatedLeaf.certificate.der,
      ...ders(stranger.issuing, stranger.domainCa, root),
    ]),
    is('the root has our name and another key', 'no-root', [
      ...ders(server, issuing, domainCa),
      impostorRoot.certificate.der,
    ]),
    is('it is the root alone', 'no-root', ders(root)),

    // how it hangs together
    is('two intermediates are swapped', 'name-mismatch', ders(server, domainCa, issuing, root)),
    is('an intermediate is left out', 'name-mismatch', ders(server, domainCa, root)),
    is('an intermediate comes twice', 'name-mismatch', ders(server, issuing, issuing, domainCa, root)),
    is(
      'it goes in a circle until it is long',
      'too-long',
      ders(server, issuing, domainCa, issuing, domainCa, issuing, domainCa, root),
    ),
    is('it goes in a circle once', 'too-long', ders(server, issuing, domainCa, issuing, domainCa, root)),
    is(
      'it has 500 certificates',
      'too-long',
      Array.from({ length: 500 }, () => server.certificate.der),
    ),
    is('the leaf names another issuer', 'name-mismatch', [
      otherLeaf((spec) => ({ ...spec, issuer: root.certificate.subjectName }), issuing),
      ...above,
    ]),
    is('the leaf names another authority key', 'name-mismatch', [
      otherLeaf(extensions({ authorityKeyId: '00'.repeat(20) }), issuing),
      ...above,
    ]),
    is('the leaf names no authority key', 'name-mismatch', [
      withExtensions(server.certificate.der, issuing.key, (all) => without(oids.authorityKeyId, all)),
      ...above,
    ]),

    // signatures
    is('the signature of the leaf has a bit flipped', 'bad-signature', [flipped, ...above]),
    is('the leaf is signed by its own key in the name of the issuer', 'bad-signature', [
      hold(key, leafSpec(serverOrder(key, {}), issuing.certificate, serial()), key).certificate.der,
      ...above,
    ]),
    is(
      'an intermediate is signed by a stranger in the name of the root',
      'bad-signature',
      otherIssuing((same) => same, stranger.root.key),
    ),

    // who may sign what
    is('a node’s leaf plays the CA', 'not-a-ca', [
      leaf(key, serverOrder(key, {}), node).certificate.der,
      ...ders(node),
      ...above,
    ]),
    is('an intermediate is not a CA', 'not-a-ca', otherIssuing(extensions({ ca: null }), root.key)),
    is(
      'an intermediate may not sign certificates',
      'not-a-ca',
      otherIssuing(extensions({ keyUsage: ['digitalSignature', 'cRLSign'] }), root.key),
    ),
    is(
      'an intermediate may sign for clients only',
      'wrong-usage',
      otherIssuing(extensions({ extendedKeyUsage: ['clientAuth'] }), root.key),
    ),
    is('an issuing CA has made another below it', 'path-length', [
      otherLeaf((same) => same, tooDeep),
      ...ders(tooDeep),
      ...above,
    ]),

    // the leaf
    is('the leaf is for clients', 'wrong-usage', [node.certificate.der, ...above]),
    is('the leaf says nothing of its usage', 'wrong-usage', [
      otherLeaf(extensions({ extendedKeyUsage: [] }), issuing),
      ...above,
    ]),
    is('the leaf may not sign handshakes', 'wrong-usage', [
      otherLeaf(extensions({ keyUsage: ['cRLSign'] }), issuing),
      ...above,
    ]),
    is('the intermediate itself is presented as the server', 'wrong-usage', above),
    is('the leaf is a CA as well', 'wrong-usage', [
      otherLeaf(extensions({ ca: { pathLen: null } }), issuing),
      ...above,
    ]),
    is('the leaf has a critical extension nobody knows', 'critical-extension', [unknownCritical, ...above]),
    is('the leaf has the host as its common name only', 'wrong-name', [
      otherLeaf(extensions({ dnsNames: ['other.example.test'] }), issuing),
      ...above,
    ]),
    is('the leaf has no names at all', 'wrong-name', [
      otherLeaf(extensions({ dnsNames: [], ips: [] }), issuing),
      ...above,
    ]),
    is('the leaf has a star for everything', 'wrong-name', [
      otherLeaf(extensions({ dnsNames: ['*'] }), issuing),
      ...above,
    ]),
    is('the leaf has a star below a top-level domain', 'wrong-name', [
      otherLeaf(extensions({ dnsNames: ['*.test'] }), issuing),
      ...above,
    ]),
    is('the leaf has a star inside of a label', 'wrong-name', [
      otherLeaf(extensions({ dnsNames: ['pl*.example.test', '*lane.example.test'] }), issuing),
      ...above,
    ]),
    is('the leaf has the host as a URI', 'wrong-mark', [
      otherLeaf(extensions({ dnsNames: [], uris: [`https://${host}`] }), issuing),
      ...above,
    ]),
    {
      ...is('the host is two labels below a star', 'wrong-name', [server.certificate.der, ...above]),
      host: 'a.b.internal.example.test',
    },
    {
      ...is('the host is what stands below the star', 'wrong-name', [server.certificate.der, ...above]),
      host: 'internal.example.test',
    },
    { ...is('the host is another address', 'wrong-name', [server.certificate.der, ...above]), host: '127.0.0.2' },
    {
      ...is('the host is an address that stands as a DNS name', 'wrong-name', [
        otherLeaf(extensions({ dnsNames: ['10.0.0.1'], ips: [] }), issuing),
        ...above,
      ]),
      host: '10.0.0.1',
    },
    { ...is('the host is empty', 'wrong-name', [server.certificate.der, ...above]), host: '' },

    // the clock, when all else is right
    { ...is('the leaf has expired', 'expired', [server.certificate.der, ...above]), nowMs: nowMs + 90 * day },
    {
      ...is('the clock is years behind', 'not-yet-valid', [server.certificate.der, ...above]),
      nowMs: Date.UTC(1970, 0, 1),
    },
    { ...is('the clock is years ahead', 'expired', [server.certificate.der, ...above]), nowMs: Date.UTC(2099, 0, 1) },
    is(
      'an intermediate has expired',
      'expired',
      otherIssuing((spec) => ({ ...spec, notBeforeMs: nowMs - 10 * day, notAfterMs: nowMs - day }), root.key),
    ),
    is(
      'an intermediate is not valid yet',
      'not-yet-valid',
      otherIssuing((spec) => ({ ...spec, notBeforeMs: nowMs + day }), root.key),
    ),
    {
      ...is('the clock is wrong, and so is the host', 'wrong-name', [server.certificate.der, ...above]),
      nowMs: 0,
      host: 'other.test',
    },
    { ...is('the clock is wrong, and so is a signature', 'bad-signature', [flipped, ...above]), nowMs: 0 },
  ]
}
