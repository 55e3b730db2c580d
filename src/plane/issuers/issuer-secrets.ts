// The secrets of outside issuers: sealed in the custody of keys, which replicas share. Nothing here is shown, logged or journaled; rows name
// the key and which secrets there are.

import type { OutsideIssuer, SecretsHeld } from '#domain/issuers/outside-issuer.ts'
import type { KeyCustody, KeyName } from '#plane/keys/key-custody.ts'
import type { Random } from '#platform/random.ts'

/** By their names in the API. */
export type Secrets = Readonly<Record<string, string>>

export type IssuerSecrets = {
  /** Durable when it resolves, and in use once a row names it. */
  keep(secrets: Secrets): Promise<SecretsHeld>
  /** Null: they are not here. Looks again first where another replica may have kept them meanwhile. */
  find(of: Pick<OutsideIssuer, 'secrets'>): Promise<Secrets | null>
  /** For good, where no row names it any more. */
  drop(held: Pick<SecretsHeld, 'key'>): Promise<void>
  /** At a start, exclusively: what no row names leaves service, and what a row names returns. */
  sort(rows: readonly Pick<OutsideIssuer, 'secrets'>[]): Promise<void>
}

const role = 'issuer-secret'
const nameOf = ({ key }: Pick<SecretsHeld, 'key'>): KeyName => ({ role, id: key })

export const openIssuerSecrets = (custody: KeyCustody, random: Random): IssuerSecrets => ({
  async keep(secrets) {
    const held = { key: Buffer.from(random.bytes(16)).toString('hex'), names: Object.keys(secrets).sort() }
    await custody.keep(nameOf(held), JSON.stringify(secrets))
    return held
  },
  async find({ secrets }) {
    if (secrets === null) return null
    const name = nameOf(secrets)
    if (!custody.has(name)) await custody.refresh()
    const text = custody.find(name)
    return text === null ? null : (JSON.parse(text) as Secrets)
  },
  drop: (held) => custody.drop(nameOf(held)),
  async sort(rows) {
    const named = new Set(rows.flatMap(({ secrets }) => (secrets === null ? [] : [secrets.key])))
    for (const name of custody.asideNames()) if (name.role === role && named.has(name.id)) await custody.takeBack(name)
    for (const name of custody.names()) if (name.role === role && !named.has(name.id)) await custody.setAside(name)
  },
})
