// The alert before the revocation lists of programs become longer than agents accept. Nothing else would show it: an agent that gets
// a list that is too long keeps the one it has.

import { wantedAlert } from '#domain/alerts/alert-kinds.ts'
import { isListLong, isListShort, type ListLength } from '#domain/alerts/list-length.ts'
import type { AlertSource } from '#plane/alerts/reconcile-alerts.ts'
import {
  longestProgramList,
  longestProgramLists,
  type ProgramLists as ListsAnswer,
} from '#wire/programs/programs-api.ts'
import type { ProgramLists } from './program-lists.ts'

export const listLengthSource = (lists: Pick<ProgramLists, 'lists'>, domainName: string): AlertSource => ({
  kinds: ['program_lists_long'],
  async wanted() {
    const longest = longestOf(await lists.lists())
    return isListLong(longest) ? [wantedAlert('program_lists_long', domainName, longest)] : []
  },
  over: async (alerts) => (isListShort(longestOf(await lists.lists())) ? alerts : []),
})

/** Of each list and of all together, what is nearest to its limit. */
const longestOf = ({ roots, lists }: ListsAnswer): ListLength => {
  const texts = [...roots, ...lists.flatMap(({ list, certificate = '' }) => [list, certificate])]
  const all: ListLength = {
    list: null,
    bytes: texts.reduce((sum, { length }) => sum + length, 0),
    mostBytes: longestProgramLists,
  }
  const each = lists.map(({ issuer, list }) => ({ list: issuer, bytes: list.length, mostBytes: longestProgramList }))
  return each.reduce((most, one) => (one.bytes / one.mostBytes > most.bytes / most.mostBytes ? one : most), all)
}
