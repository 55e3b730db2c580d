// What nodes ask for their programs, and what operators do about names.

import type { IssuerId, NodeId } from '#domain/core/node.ts'
import { refuse } from '#domain/core/refusal.ts'
import { programUri } from '#domain/core/subject-uri.ts'
import { bareName } from '#domain/programs/name-claim.ts'
import { programKey, type Program, type ProgramLeaf } from '#domain/programs/program.ts'
import { isoTime } from '#platform/clock.ts'
import type { FlowCore } from '#plane/core/core.ts'
import { domainSettingsRow } from '#plane/core/domain-settings-row.ts'
import { signerNames } from '#plane/core/outside-issuer-rows.ts'
import { namesHeldBy } from '#plane/core/programs-of-node.ts'
import { answer, attributionOf, serve, type Route } from '#plane/http/route.ts'
import { nodeNamesApi, type NodeNames, type ProgramView } from '#wire/programs/names-api.ts'
import { programsApi } from '#wire/programs/programs-api.ts'
import { addNames, removeNames } from './change-names.ts'
import { issueProgram, type ProgramIssueParts } from './issue-program.ts'
import type { ProgramLists } from './program-lists.ts'

export type ProgramRouteParts = ProgramIssueParts & { readonly lists: Pick<ProgramLists, 'lists'> }

export const programRoutes = (core: FlowCore, parts: ProgramRouteParts): readonly Route[] =>
  serve(programsApi, {
    issue: async (call) => {
      const { principal, correlation } = call
      const outcome = await issueProgram(core, parts, principal, {
        output: call.params.output,
        csr: call.body.csr,
        takesOutside: call.body.outside_roots === true,
        correlation,
      })
      return 'kind' in outcome ? outcome : answer(outcome)
    },
    lists: async () => answer(await parts.lists.lists()),
  })

const usualPage = 100

export const operatorProgramRoutes = (core: FlowCore, parts: Pick<ProgramRouteParts, 'lists'>): readonly Route[] =>
  serve(nodeNamesApi, {
    names: async (call) => {
      const { id } = call.params
      const node = await core.store.get('node', id)
      return node === null ? refuse('NODE_NOT_FOUND', id) : answer(await namesView(core, id))
    },
    addNames: async (call) => {
      const { id } = call.params
      const done = await addNames(core, id, call.body.names, attributionOf(call))
      return done.kind === 'refused' ? done : answer(await namesView(core, id))
    },
    removeNames: async (call) => {
      const { id } = call.params
      const done = await removeNames(core, id, call.body.names, attributionOf(call))
      return done.kind === 'refused' ? done : answer(await namesView(core, id))
    },
    programs: async (call) => {
      const { node, after = null, limit = usualPage } = call.query
      const where = node === undefined ? {} : { node }
      const rows = await core.store.list('program', { where, after, limit })
      if (node !== undefined && rows.length === 0 && (await core.store.get('node', node)) === null)
        return refuse('NODE_NOT_FOUND', node)
      const domain = (await domainSettingsRow(core.store)).value.name
      const nameOf = await signerNames(core.store)
      const last = rows.length < limit ? undefined : rows.at(-1)
      return answer({
        programs: rows.map(({ value }) => programView(domain, value, nameOf)),
        next: last === undefined ? null : programKey(last.value),
      })
    },
    programLists: async () => answer(await parts.lists.lists()),
  })

const namesView = async ({ store }: FlowCore, node: NodeId): Promise<NodeNames> => ({
  node,
  names: (await namesHeldBy(store, node)).map(({ value: { name, holder, sinceMs, by } }) => ({
    name: bareName(name),
    derived: holder.kind === 'node' && holder.derived,
    since: isoTime(sinceMs),
    by,
  })),
})

/** Of who signed. */
type NameOf = (authority: IssuerId) => string

const programView = (
  domain: string,
  { node, epoch, output, current, former, ended }: Program,
  nameOf: NameOf,
): ProgramView => ({
  node,
  epoch,
  output,
  uri: programUri(domain, node, output),
  current: current === null ? null : leafView(current, nameOf),
  former: former === null ? null : leafView(former, nameOf),
  ended: ended === null ? null : { at: isoTime(ended.atMs), why: ended.why },
})

const leafView = ({ issuer, serial, sha256, issuedAtMs, notAfterMs, names }: ProgramLeaf, nameOf: NameOf) => ({
  issuer,
  issuer_name: nameOf(issuer),
  serial,
  fingerprint: `sha256:${sha256}`,
  sha256,
  issued_at: isoTime(issuedAtMs),
  not_after: isoTime(notAfterMs),
  names: names.map(bareName),
})
