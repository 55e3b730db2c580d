// After the list of what is in place was damaged: what an earlier configuration has put somewhere must not stay there for good.

import type { AgentCore, AgentParts } from '#agent/core/agent-parts.ts'
import { tidy } from '#agent/core/trouble.ts'
import { OutputName } from '#wire/programs/programs-api.ts'
import { longestFailure, openEfforts } from './efforts.ts'
import type { ListStore } from './list-store.ts'
import { pathOf, samePlace, type FoundOutput, type NodeOfPrograms, type Publisher } from './publisher.ts'
import { matchesSchema } from '#platform/json-schema.ts'

export type Search = {
  /** Enters what is found into the list, until every place was seen. Nothing, where the list is whole. */
  look(): Promise<void>
  /** Whether places are left that may be seen without the owner of the host. */
  isUnderWay(): boolean
  /** It may look again now. */
  forget(): void
}

type SearchParts = {
  readonly lists: ListStore
  readonly record: Pick<AgentParts['record'], 'changed'>
  readonly publisher: Publisher
  /** Null: this machine is no node yet. */
  readonly nodeNow: () => NodeOfPrograms | null
  /** Of the leaf that the agent has for an output; null: none. */
  readonly serialOf: (output: string) => string | null
}

/** The one name in its efforts. */
const search = 'the list of outputs'

export const openSearch = (core: AgentCore, parts: SearchParts): Search => {
  const { lists, record, publisher, nodeNow, serialOf } = parts
  const efforts = openEfforts(core, record)

  /** With the list it is lost what was withdrawn: only a leaf that the agent has is known not to be. */
  const enter = (found: readonly FoundOutput[], isAll: boolean): void => {
    const known = lists.current().placed
    const isKnown = (one: FoundOutput): boolean =>
      known.some((placed) => placed.output === one.output && samePlace(placed, one))
    const unknown = found.filter((one) => matchesSchema(OutputName, one.output) && !isKnown(one))
    if (unknown.length === 0 && !isAll) return
    const entered = unknown.map(({ output, by, directory, serial }) => {
      const withdrawn = serial === null || serialOf(output) !== serial
      return { output, by, directory, withdrawn }
    })
    lists.keep({ placed: [...known, ...entered], placedUnknown: !isAll })
    const names = unknown.map((one) => pathOf(one.output, one)).join(', ')
    const text = `The list of the outputs on this host was damaged. Found in its places: ${names === '' ? 'none' : names}.`
    core.log.error({ code: 'ledger_damaged' }, text)
    record.changed('programs', 'ledger_damaged', tidy(text, longestFailure))
  }

  return {
    async look() {
      const node = nodeNow()
      if (lists.current().placedUnknown !== true || node === null) return
      // Else with every look: where a new generation is put before the search, the one that was withdrawn would stay beside it.
      if (efforts.isUpToOwner(search) && !efforts.mayTry(search)) return
      await efforts.attempt(search, () => {
        const { outputs: found, more } = publisher.found(node)
        enter(found, more === null)
        return more === null ? Promise.resolve() : Promise.reject(more)
      })
    },
    isUnderWay: () => lists.current().placedUnknown === true && nodeNow() !== null && !efforts.isUpToOwner(search),
    forget: () => efforts.forget(),
  }
}
