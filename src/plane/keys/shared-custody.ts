// The keys of replicas that share a store: sealed, and in the store with everything else, so that whichever plane is there
// can go on. What a plane presents itself with is its own, and in memory only.

import type { SealedKeys } from '#plane/store/contract/store.ts'
import { keyNameOfSealed, sealedNameOf, type KeyCustody, type KeyName } from './key-custody.ts'
import { nothingElsewhere, type KeysElsewhere } from './keys-elsewhere.ts'
import type { FoundSealingKey } from './sealing-key.ts'
import { takeTurns } from '#plane/core/turns.ts'

/** Not the name of a key, so that a search for keys does not find it. */
const asidePrefix = 'set-aside/'

const itsOwn: readonly KeyName['role'][] = ['server', 'recovery-server']

export const openSharedCustody = async (
  keys: SealedKeys,
  sealing: FoundSealingKey,
  elsewhere: KeysElsewhere = nothingElsewhere,
): Promise<KeyCustody> => {
  let shared = new Map(await keys.all())
  /** Not sealed: it never leaves this process. */
  const own = new Map<string, string>()
  const made = new Set<string>()
  // A look that began before a key was kept must not end after it and forget it.
  const inTurn = takeTurns()
  const names = (): readonly KeyName[] =>
    [...shared.keys(), ...own.keys()].flatMap((name) => keyNameOfSealed(name) ?? [])
  const find = (name: KeyName): string | null => {
    const sealedName = sealedNameOf(name)
    const sealed = shared.get(sealedName)
    return sealed === undefined ? (own.get(sealedName) ?? null) : sealing.key.unseal(sealedName, sealed)
  }
  const refresh = async (): Promise<void> => {
    shared = new Map(await keys.all())
  }
  const keepShared = async (name: KeyName, text: string): Promise<void> => {
    const sealedName = sealedNameOf(name)
    const sealed = sealing.key.seal(sealedName, text)
    if (await keys.add(sealedName, sealed)) {
      made.add(sealedName)
      return void shared.set(sealedName, sealed)
    }
    await refresh()
    if (find(name) !== text) throw new Error(`another key is kept as ${sealedName} already`)
  }

  return {
    protection: sealing.protection,
    elsewhere,
    async keep(name, text) {
      if (itsOwn.includes(name.role)) own.set(sealedNameOf(name), text)
      else await inTurn(() => keepShared(name, text))
    },
    find,
    has: (name) => shared.has(sealedNameOf(name)) || own.has(sealedNameOf(name)),
    async drop(name) {
      const sealedName = sealedNameOf(name)
      if (own.delete(sealedName)) return
      await inTurn(async () => {
        await keys.remove(sealedName)
        shared.delete(sealedName)
      })
    },
    async setAside(name) {
      const sealedName = sealedNameOf(name)
      if (own.delete(sealedName)) return
      await inTurn(async () => {
        const sealed = shared.get(sealedName)
        // Sealed as before, so that it still opens under its own name when it is taken back.
        if (sealed !== undefined && !made.has(sealedName)) await keys.add(asidePrefix + sealedName, sealed)
        await keys.remove(sealedName)
        await refresh()
      })
    },
    asideNames: () =>
      [...shared.keys()].flatMap((name) =>
        name.startsWith(asidePrefix) ? (keyNameOfSealed(name.slice(asidePrefix.length)) ?? []) : [],
      ),
    takeBack: (name) =>
      inTurn(async () => {
        const sealedName = sealedNameOf(name)
        const sealed = shared.get(asidePrefix + sealedName)
        if (sealed === undefined || shared.has(sealedName)) return
        await keys.add(sealedName, sealed)
        await keys.remove(asidePrefix + sealedName)
        await refresh()
      }),
    names,
    refresh: () => inTurn(refresh),
  }
}
