// Issuers: what operators see of them, and what they do to them.

import { builtIn, type OutsideIssuer } from '#domain/issuers/outside-issuer.ts'
import { notThere } from '#domain/issuers/change-issuer.ts'
import { workersNaming } from '#domain/issuers/named-issuer.ts'
import { outputsNamingIt } from '#domain/issuers/naming-issuer.ts'
import { profilesNaming } from '#domain/issuers/profile-issuer.ts'
import { isRefusal, refuseField, type Refusal } from '#domain/core/refusal.ts'
import { parseCertificate } from '#pki/parse-certificate.ts'
import { allFromPem } from '#pki/pem.ts'
import { fingerprint } from '#pki/certificate.ts'
import type { Issuer } from '#plane/core/issuer.ts'
import type { Core } from '#plane/core/core.ts'
import { answer, attributionOf, serve, type CallOf, type Route } from '#plane/http/route.ts'
import { isoTime } from '#platform/clock.ts'
import { builtInView, issuerApi, issuerView, type IssuerView } from '#wire/issuers/issuer-api.ts'
import {
  addIssuer,
  changeIssuer,
  disableIssuer,
  enableIssuer,
  readIssuer,
  recordTest,
  retireIssuer,
  type Changed,
  type ChangeParts,
} from './change-issuers.ts'
import { readIssuers } from '#plane/core/outside-issuer-rows.ts'
import { rowPages } from '#plane/core/pages.ts'
import type { KnownIssuers } from './known-issuers.ts'
import type { OutsideIssuers } from './open-outside-issuers.ts'
import { certificateKey } from '#domain/core/certificate.ts'
import { samplesNaming, testSamples } from './test-samples.ts'
import { orphansIn, waitingRevocations } from './orders-of-issuer.ts'

export type IssuerRouteParts = ChangeParts & {
  readonly known: KnownIssuers
  readonly outside: Pick<OutsideIssuers, 'health' | 'test' | 'renewalRoot'>
  readonly builtIn: Pick<Issuer, 'longestLeafMs'>
}

export const operatorIssuerRoutes = (core: Core, parts: IssuerRouteParts): readonly Route[] => {
  const shown = async (done: Changed | Refusal, status?: 201) =>
    isRefusal(done) ? done : answer(await viewOf(core, parts, done.issuer), status)
  const notOfBuiltIn = (name: string): Refusal | null =>
    name === builtIn
      ? refuseField('REQUEST_INVALID', 'name', `${builtIn} is the authority of the domain: muster ca --help`)
      : null
  return serve(issuerApi, {
    list: async () => {
      const rows = await readIssuers(core.store)
      const serving = rows.map(({ value }) => value).filter(({ state }) => state.kind !== 'retired')
      const views = await Promise.all(serving.map((issuer) => viewOf(core, parts, issuer)))
      return answer({ issuers: [await builtInOf(core, parts), ...views] })
    },
    orphans: async ({ query: { after = null, limit = usualPage } }) => {
      const orders = await core.store.list('order', { where: { orphaned: 1 }, after, limit })
      const last = orders.at(-1)
      return answer({
        orphans: await orphansIn(core.store, parts.known, orders),
        next: orders.length < limit || last === undefined ? null : last.value.id,
      })
    },
    show: async ({ params: { name } }) => {
      if (name === builtIn) return answer(await builtInOf(core, parts))
      const issuer = await readIssuer(core, name)
      return isRefusal(issuer) ? issuer : answer(await viewOf(core, parts, issuer.value))
    },
    add: async (call) => shown(await addIssuer(core, parts, call.body, attributionOf(call)), 201),
    set: async (call) => {
      const { name } = call.params
      return notOfBuiltIn(name) ?? shown(await changeIssuer(core, parts, name, call.body, attributionOf(call)))
    },
    test: async (call) => notOfBuiltIn(call.params.name) ?? test(core, parts, call),
    disable: async (call) => {
      const { name } = call.params
      return notOfBuiltIn(name) ?? shown(await disableIssuer(core, name, call.body.reason, attributionOf(call)))
    },
    enable: async (call) => {
      const { name } = call.params
      return notOfBuiltIn(name) ?? shown(await enableIssuer(core, name, attributionOf(call)))
    },
    retire: async (call) => {
      const { name } = call.params
      const no = notOfBuiltIn(name)
      if (no !== null) return no
      const done = await retireIssuer(core, parts, name, attributionOf(call))
      return isRefusal(done) ? done : answer({ name })
    },
  })
}

const usualPage = 100

const test = async (core: Core, parts: IssuerRouteParts, call: CallOf<typeof issuerApi.test>) => {
  const issuer = await readIssuer(core, call.params.name)
  if (isRefusal(issuer)) return issuer
  const no = notThere(issuer.value)
  if (no !== null) return no
  const { profiles, outputs, worker_issuers: workerIssuers, lifetime_ms: lifetimeMs = null } = call.body
  const isSaid = [profiles, outputs, workerIssuers].some((one) => one !== undefined)
  const asked = isSaid
    ? { profiles: profiles ?? [], outputs: outputs ?? [], workerIssuers: workerIssuers ?? [] }
    : await samplesNaming(core, issuer.value)
  const samples = await testSamples(core, asked, lifetimeMs)
  if (isRefusal(samples)) return samples
  const tested = await parts.outside.test(issuer.value, samples)
  if (isRefusal(tested)) return tested
  const { faults, abilities } = tested
  if (faults.length > 0 || abilities === null)
    return answer({ passed: false, faults: [...faults], issuer: await viewOf(core, parts, issuer.value) })
  const done = await recordTest(core, issuer, abilities, attributionOf(call))
  if (isRefusal(done)) return done
  return answer({ passed: true, faults: [], issuer: await viewOf(core, parts, done.issuer) })
}

const builtInOf = async ({ store }: Pick<Core, 'store'>, parts: IssuerRouteParts): Promise<IssuerView> =>
  builtInView(profilesNaming(builtIn, await store.profiles()), parts.builtIn.longestLeafMs())

const viewOf = async ({ store }: Pick<Core, 'store'>, parts: IssuerRouteParts, issuer: OutsideIssuer) => {
  const issuers = (await store.issuers()).map(({ value }) => value)
  const roots = issuers.filter(({ id }) => issuer.roots.includes(id))
  return issuerView(issuer, {
    serverRoots: issuer.serverRoots.flatMap((pem) =>
      (allFromPem('CERTIFICATE', pem) ?? []).map((der) => `SHA256:${fingerprint(der)}`),
    ),
    roots: roots.map(({ id, der, notAfterMs }) => {
      const bytes = Buffer.from(der, 'base64')
      const certificate = parseCertificate(bytes)
      return {
        id,
        subject: certificate.kind === 'certificate' ? certificate.subject : id,
        fingerprint: `SHA256:${fingerprint(bytes)}`,
        not_after: isoTime(notAfterMs),
      }
    }),
    renewalRoot: issuer.forged ? null : await parts.outside.renewalRoot(issuer),
    profiles: profilesNaming(issuer.name, await store.profiles()),
    ...(await otherNaming(store, issuer.name)),
    status: await statusOf(store, issuer),
    waiting: await waitingRevocations(store, issuer),
    health: parts.outside.health(issuer),
  })
}

/** Outputs, each with who lists it, and worker issuers. */
const otherNaming = async (store: Pick<Core['store'], 'list' | 'profiles'>, issuer: string) => {
  const vclusters = (await Array.fromAsync(rowPages(store, 'vcluster', ({ name }) => name))).flat()
  const workers = (await Array.fromAsync(rowPages(store, 'worker-issuer', ({ name }) => name))).flat()
  const outputs = outputsNamingIt(issuer, { profiles: await store.profiles(), vclusters })
  return { outputs, workerIssuers: workersNaming(issuer, workers) }
}

/** Who answers for its leaves, from the one that it signed first of those on record. Null: there is none. */
const statusOf = async (store: Pick<Core['store'], 'get' | 'list' | 'issuers'>, { id }: Pick<OutsideIssuer, 'id'>) => {
  const [order] = await store.list('order', { where: { issuer: id, state: 'issued' }, after: null, limit: 1 })
  if (order?.value.state.kind !== 'issued') return null
  for (const { value } of await store.issuers()) {
    const row = await store.get('certificate', certificateKey(value.id, order.value.state.serial))
    if (row?.value.order !== order.value.id) continue
    const leaf = parseCertificate(Buffer.from(row.value.der, 'base64'))
    return leaf.kind === 'certificate' ? { ocsp: leaf.ocspUrls, crl: leaf.crlUrls } : null
  }
  return null
}
