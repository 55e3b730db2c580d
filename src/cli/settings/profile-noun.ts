import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, plans, verb } from '#cli/kit/verb.ts'

export const declareProfile = (program: Command, cli: Cli): void => {
  const profile = noun(program, 'profile', 'Named policies: lifetimes, keys, ways to join and to come back', [
    ['muster profile list', ''],
  ])
  const verbs = () => import('./profile-verbs.ts')

  const list = verb(profile, 'list', 'List profiles', [['muster profile list', '']])
  performs(cli, list, async () => (await verbs()).profileList)

  const show = verb(profile, 'show <name>', 'Show a profile, in words that profile set takes', [
    ['muster profile show gpu-cloud', ''],
  ])
  performs(cli, show, async () => (await verbs()).profileShow)

  const create = verb(profile, 'create <name> [settings...]', 'Make a profile from another one', [
    ['muster profile create short --from gpu-cloud certificate.lifetimeMs=1h', ''],
  ]).option('--from <name>', "profile to start from (default: the domain's)")
  performs(cli, create, async () => (await verbs()).profileCreate)

  const set = verb(profile, 'set [name] [settings...]', 'Change a profile; nodes take it up at their next renewal', [
    ['muster profile set gpu-cloud certificate.lifetimeMs=12h', 'durations: 30m, 24h, 3d'],
    ['muster profile set gpu-cloud onActiveConflict=reject', ''],
    ['muster profile set hpc-diskless probeSilenceMs=60s', 'how long a silent node keeps its identity'],
    ['muster profile set gpu-cloud certificate.keyTypes=p256,p384', 'lists with commas'],
    ['muster profile set gpu-cloud recovery.mode=deny --plan', 'who could not come back by itself then'],
  ])
  plans(set)
  performs(cli, set, async () => (await verbs()).profileSet)
}
