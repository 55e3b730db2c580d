// `muster node`: what its verbs are. What they do is in the files beside it, loaded when it is called for.

import { Option, type Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { collect, lists, noun, loads, verb } from '#cli/kit/verb.ts'
import { declareActions } from './node-verbs.ts'
import { nodeColumns } from './node-columns.ts'
import { filters, selects } from './select-options.ts'

export const declareNode = (node: Command, cli: Cli): void => {
  noun(node, [
    ['muster node list', ''],
    ['muster node show gpu-001', 'why it is in the state it is in'],
  ])

  const enroll = verb(node, 'enroll [id]', 'Register a node, so that its machine may join; or many from a file', [
    [
      'muster node enroll hpc-17 --mac 52:54:00:12:34:56 --bmc-serial CN7X --profile hpc-diskless',
      'by hardware identity',
    ],
    [
      'muster node enroll --batch nodes.csv',
      'columns: id,profile,mac,bmc_serial,names,provisioning,tags; safe to repeat',
    ],
    ['muster node enroll --batch nodes.csv --tokens tokens.tsv', 'and a join string for each, into a file of its own'],
  ])
    .option('--mac <address>', 'a MAC address of the machine; may be repeated', collect)
    .option('--bmc-serial <serial>', 'serial number of its BMC')
    .option('--profile <name>', "profile of the node (default: the domain's)")
    .option('--batch <file>', 'register every line of a CSV file (- for standard input); other columns become tags')
    .option('--tokens <file>', 'with --batch: write a token for every line there, readable by its owner only')
    .option(
      '--expires <duration>',
      'with --tokens: how long they are good for (default: the profile says; at most 24h)',
    )
  loads(cli, enroll, async () => (await import('./node-enroll.ts')).nodeEnroll)

  const list = verb(node, 'list [names...]', 'List nodes: state, profile, certificate, last seen, conditions', [
    ['muster node list', 'all but revoked ones'],
    ["muster node list 'gpu-*' --state quarantined", 'every filter has to hold'],
    ['muster node list --tag rack=7 --connected no', ''],
    ['muster node list --sort seen:desc --columns name,seen,conditions', ''],
    ['muster node list --recoverable', 'which nodes would recover without an operator, proven by rehearsal'],
    ['muster node list --recoverable no', 'who would not, and why'],
    ['muster node list --schedulable', 'where work may be placed'],
    ['muster node list --schedulable no', 'where it may not, and why'],
    ['muster node list --columns name,agent --sort agent', 'which version the agent of each runs'],
    ['muster node list -o json', 'for scripts; also wide, yaml, csv, and name for one name a line'],
  ])
    .option('--all', 'revoked nodes too')
    .addOption(
      new Option(
        '--recoverable [answer]',
        'which are proven to recover without an operator, and why the rest is not',
      ).choices(['yes', 'no']),
    )
    .addOption(
      new Option('--schedulable [answer]', 'where work may be placed, or where not and why')
        .choices(['yes', 'no'])
        .preset('yes'),
    )
  loads(cli, lists(filters(list), nodeColumns(0)), async () => (await import('./node-list.ts')).nodeList)

  const show = verb(node, 'show <id>', 'Show everything known of a node, and why it is in its state', [
    ['muster node show gpu-001', ''],
  ])
  loads(cli, show, async () => (await import('./node-show.ts')).nodeShow)

  const explain = verb(
    node,
    'explain <id>',
    'Show the history of a node: what failed, what was tried, what happens next',
    [['muster node explain gpu-001', '']],
  )
  loads(cli, explain, async () => (await import('./node-show.ts')).nodeExplain)

  const bundle = verb(
    node,
    'bundle <id>',
    'What a node joins with, ready for provisioning: cloud-init, env file or script',
    [
      ['muster node bundle gpu-001 --format env --out gpu-001.env', 'the agent is in the image already'],
      ['muster node bundle gpu-001 --format cloud-init', 'fetches the agent from the plane, by its digest'],
      [
        'muster node bundle gpu-001 --format script --agent-url https://files.example/muster-linux-x64.gz --agent-file dist/muster-linux-x64.gz',
        'fetches it from elsewhere, by its digest',
      ],
      ['muster node bundle hpc-201 --format env', 'of a profile that joins by hardware: no secret, for the image'],
    ],
  )
    .addOption(
      new Option('--format <format>', 'what to make').choices(['cloud-init', 'env', 'script']).makeOptionMandatory(),
    )
    .option('--firmware <name>', 'a firmware profile that cloud-init applies first: slice-vm or baremetal')
    .addOption(
      new Option(
        '--agent <where>',
        'where the machine gets the agent; default: from the plane, if that hands it out (muster domain agents) and the machine has a token',
      ).choices(['plane', 'image']),
    )
    .option('--agent-url <url>', 'where else the machine gets the agent: https, or a path on it')
    .option('--agent-file <file>', 'the agent to install, for its digest')
    .option('--agent-sha256 <hex>', 'its digest')
    .option(
      '--pin-statements',
      'root pins the statement keys of the plane on the machine: its helper takes tasks by them, and starts services by them alone',
    )
    .option('--replace', 'may take the place of an active node')
    .option('--expires <duration>', 'how long the token is good, such as 30m')
    .option('--profile <name>', "profile, if the node is not registered yet (default: the domain's)")
    .option('--this-machine', 'it is for the machine of the plane, which may be called localhost there')
    .option('--out <file>', 'write it there, readable by its owner only')
  loads(cli, bundle, async () => (await import('./node-bundle.ts')).nodeBundle)

  const names = verb(
    node,
    'names <action> <id> [names...]',
    'add, remove or list the names that programs of a node may carry',
    [
      ['muster node names add gpu-001 db-1.example 10.0.0.7', 'DNS names and addresses'],
      ['muster node names remove gpu-001 db-1.example', 'denies the certificates that carry it'],
      ['muster node names list gpu-001', ''],
    ],
  )
  loads(cli, names, async () => (await import('#cli/programs/node-names.ts')).nodeNames)

  declareActions(node, cli)
  declareMachine(node, cli)
}

const declareMachine = (node: Command, cli: Cli): void => {
  const machine = verb(
    node,
    'machine [nodes...]',
    'Show tags, firmware, slots and SKU of a machine; with options, report them of one or of many',
    [
      ['muster node machine gpu-001', 'its SKU, or what is missing'],
      ['muster node machine gpu-001 --firmware slice-vm --slot gpu0=approved --slot gpu1=approved', ''],
      ['muster node machine gpu-001 --ready --evidence burn_in=passed', ''],
      ['muster node machine gpu-001 --slot gpu0=cleanup_blocked:"disk not wiped"', 'keeps work off the whole machine'],
      ['muster node machine --tag rack=7 --firmware slice-vm', 'shows which'],
    ],
  )
    .option('--firmware <name>', 'the firmware profile it runs')
    .option('--slot <name=state>', 'a slot and its state, with :DETAIL if need be; may be repeated', collect)
    .option('--remove-slot <name>', 'a slot that is not there any more; may be repeated', collect)
    .option('--ready', 'the evidence says it is ready')
    .option('--no-ready', 'the evidence says it is not')
    .option('--evidence <name=value>', 'what that was read from; may be repeated', collect)
  loads(cli, selects(machine), async () => (await import('./node-machine.ts')).nodeMachine)

  const scrape = verb(node, 'scrape-address [nodes...]', 'Register where a Prometheus may scrape a node', [
    ['muster node scrape-address gpu-001 10.0.0.7:9100', 'listed at GET /v1/prometheus/targets'],
    ['muster node scrape-address gpu-001 --remove', ''],
    ['muster node scrape-address --vcluster old --remove', 'shows which'],
  ]).option('--remove', 'it is scraped no more')
  loads(cli, selects(scrape), async () => (await import('./node-scrape.ts')).nodeScrapeAddress)
}
