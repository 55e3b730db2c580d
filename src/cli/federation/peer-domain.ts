// `muster peer-domain`: other domains that may have the same machines.

import type { Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, verb } from '#cli/kit/verb.ts'
import { createFile } from '#platform/folder.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { PeerDomainIntroduction, type PeerDomainView, peerDomainApi } from '#wire/federation/peer-domain-api.ts'
import { usageFailure } from '#cli/kit/failure.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { readText } from '#cli/kit/arguments.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { renderFacts } from '#cli/kit/table.ts'

export const declarePeerDomain = (peer: Command, cli: Cli): void => {
  noun(peer, [
    ['muster peer-domain self --out here.json', 'on both sides; then carry the file to the other'],
    ['muster peer-domain add there.json', 'on both sides'],
  ])
  const self = verb(peer, 'self', 'What another domain needs to know of this one: address, roots, keys; no secret', [
    ['muster peer-domain self --out here.json', ''],
  ]).option('--out <file>', 'write it there instead of printing it')
  performs(cli, self, peerDomainSelf)

  const add = verb(peer, 'add <file>', 'Add a peer domain: both tell each other which machines are active', [
    ['muster peer-domain add there.json', 'a file of muster peer-domain self on the other side; - for standard input'],
  ])
  performs(cli, add, peerDomainAdd)

  const list = verb(peer, 'list', 'List peer domains, and how many of our machines are active there', [
    ['muster peer-domain list', ''],
  ])
  performs(cli, lists(list, columns), peerDomainList)

  const remove = verb(peer, 'remove <name>', 'Remove a peer domain', [['muster peer-domain remove b.example', '']])
  performs(cli, remove, peerDomainRemove)
}

const longestFile = 256 * 1024

const peerDomainSelf = async (cli: Cli, options: GlobalOptions & { readonly out?: string }): Promise<void> => {
  const self = await connect(cli, options).ask(peerDomainApi.self)
  const text = JSON.stringify(self, null, 1)
  const print = printer(cli, options)
  if (options.out === undefined) return print.answer(self, () => [text])
  const { out } = options
  if (createFile(out, `${text}\n`, 0o644) === 'exists') {
    throw usageFailure(`${out} is there already: choose another name for --out.`)
  }
  print.answer({ name: self.name, file: out }, () => [out])
  print.note(`next: carry it to the other domain, there: muster peer-domain add FILE`)
}

const peerDomainAdd = async (cli: Cli, options: GlobalOptions, file: string): Promise<void> => {
  const body = introductionIn(file, await readText(cli, file, longestFile))
  const about = { NAME: body.name }
  const peer = await connect(cli, options).ask(peerDomainApi.add, { body, about })
  show(cli, options, peer)
}

const peerDomainRemove = async (cli: Cli, options: GlobalOptions, name: string): Promise<void> => {
  const about = { NAME: name }
  const peer = await connect(cli, options).ask(peerDomainApi.remove, { params: { name }, about })
  show(cli, options, peer)
}

const peerDomainList = async (cli: Cli, options: ListOptions): Promise<void> => {
  const answer = await connect(cli, options).ask(peerDomainApi.list)
  const { peer_domains: peers } = answer
  showList(cli, options, { items: peers, columns, body: (shown) => ({ ...answer, peer_domains: shown }) })
  if (peers.length === 0) printer(cli, options).note('there are none; see: muster peer-domain --help')
}

const columns: readonly Column<PeerDomainView>[] = [
  { name: 'domain', cell: ({ name }) => name },
  { name: 'address', cell: ({ url }) => url },
  { name: 'active-there', cell: ({ active_there: count }) => String(count), value: ({ active_there: count }) => count },
  { name: 'added', cell: ({ added_at: at }) => at },
]

const introductionIn = (file: string, text: string): PeerDomainIntroduction => {
  const next = 'Make it on the other side: muster peer-domain self --out FILE'
  try {
    const value: unknown = JSON.parse(text)
    if (matchesSchema(PeerDomainIntroduction, value)) return value
  } catch {
    throw usageFailure(`${file} is not JSON.`, next)
  }
  throw usageFailure(`${file} does not introduce a domain.`, next)
}

const show = (cli: Cli, options: GlobalOptions, peer: PeerDomainView): void =>
  printer(cli, options).answer(peer, () =>
    renderFacts([
      ['domain', peer.name],
      ['address', peer.url],
      ['added', `${peer.added_at} by ${peer.added_by}`],
    ]),
  )
