import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, verb } from '#cli/kit/verb.ts'

export const declarePeerDomain = (program: Command, cli: Cli): void => {
  const peer = noun(program, 'peer-domain', 'Other domains that may have the same machines in their registries', [
    ['muster peer-domain self --out here.json', 'on both sides; then carry the file to the other'],
    ['muster peer-domain add there.json', 'on both sides'],
  ])
  const verbs = () => import('./peer-domain-verbs.ts')

  const self = verb(peer, 'self', 'What another domain needs to know of this one: address, roots, keys; no secret', [
    ['muster peer-domain self --out here.json', ''],
  ]).option('--out <file>', 'write it there instead of printing it')
  performs(cli, self, async () => (await verbs()).peerDomainSelf)

  const add = verb(peer, 'add <file>', 'Tell another domain of activations here, and believe its word about its own', [
    ['muster peer-domain add there.json', 'a file of muster peer-domain self on the other side; - for standard input'],
  ])
  performs(cli, add, async () => (await verbs()).peerDomainAdd)

  const list = verb(peer, 'list', 'List peer domains, and how many of our machines are active there', [
    ['muster peer-domain list', ''],
  ])
  performs(cli, list, async () => (await verbs()).peerDomainList)

  const remove = verb(peer, 'remove <name>', 'Exchange nothing with it any more', [
    ['muster peer-domain remove b.example', ''],
  ])
  performs(cli, remove, async () => (await verbs()).peerDomainRemove)
}
