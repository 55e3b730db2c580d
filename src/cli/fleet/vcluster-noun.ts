import type { Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, performs, plans, verb } from '#cli/kit/verb.ts'

export const declareVCluster = (program: Command, cli: Cli): void => {
  const vcluster = noun(program, 'vcluster', 'Groups of nodes: what they run, and who may do what there', [
    ['muster vcluster create training --overlay training.json', ''],
    ['muster node assign gpu-001 gpu-002 --to training', ''],
  ])
  const verbs = () => import('./vcluster-verbs.ts')

  const list = verb(vcluster, 'list', 'List vClusters', [['muster vcluster list', '']])
  performs(cli, list, async () => (await verbs()).vclusterList)

  const show = verb(vcluster, 'show <name>', 'Show a vCluster: its policy, its files and services', [
    ['muster vcluster show training', ''],
    ['muster vcluster show training -o json | jq .overlay > training.json', 'an overlay as vcluster set takes it'],
  ])
  performs(cli, show, async () => (await verbs()).vclusterShow)

  const create = verb(vcluster, 'create <name> [settings...]', 'Make a vCluster', [
    ['muster vcluster create training', 'observes, and runs nothing'],
    ['muster vcluster create secret peering=isolated', 'its nodes see only each other'],
    ['muster vcluster create training --overlay training.json', ''],
  ])
    .option('--overlay <file>', 'what its nodes run, as JSON (- for standard input)')
    .addHelpText('after', overlayHelp)
  performs(cli, create, async () => (await verbs()).vclusterCreate)

  const set = verb(vcluster, 'set <name> [settings...]', 'Change a vCluster; its nodes are told at once', [
    ['muster vcluster set training policy.enforcementMode=enforce', 'drift is put right, not only reported'],
    ['muster vcluster set training policy.execWhitelist=nvidia-smi,dmesg', 'lists with commas'],
    ['muster vcluster set training --overlay training.json', 'replaces all of its files and services'],
  ])
    .option('--overlay <file>', 'what its nodes run, as JSON (- for standard input)')
    .addHelpText('after', overlayHelp)
  performs(cli, set, async () => (await verbs()).vclusterSet)

  const remove = verb(vcluster, 'delete [name]', 'Delete a vCluster', [
    ['muster vcluster delete training', 'refused while nodes are in it'],
    ['muster vcluster delete training --plan', 'what would become of its nodes'],
    ['muster vcluster delete training --force', 'its nodes go to maintenance mode, their work is released'],
  ]).option('--force', 'also with nodes in it')
  plans(remove)
  performs(cli, remove, async () => (await verbs()).vclusterDelete)
}

const overlayHelp = `
An overlay:
  {
    "files": [{"path": "etc/worker.conf", "mode": 420, "content": "batch = 8\\n"}],
    "services": [{"name": "worker", "command": ["/usr/bin/worker", "--config", "{overlay}/etc/worker.conf"]}]
  }
Paths lie below a folder of the agent, for which {overlay} stands; modes are decimal (420 is 644 in octal).`
