// `muster node`: what its verbs are. What they do is in the files beside it, loaded when it is called for.

import { Option, type Command } from 'commander'
import { revocationReasons } from '#domain/core/certificate.ts'
import { membershipKinds } from '#domain/core/node.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { collect, noun, loads, onlyPlans, verb } from '#cli/kit/verb.ts'

const acts = () => import('./node-act.ts')

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
    ['muster node enroll --batch nodes.csv', 'columns: id,profile,mac,bmc_serial,names,provisioning; safe to repeat'],
  ])
    .option('--mac <address>', 'a MAC address of the machine; may be repeated', collect)
    .option('--bmc-serial <serial>', 'serial number of its BMC')
    .option('--profile <name>', "profile of the node (default: the domain's)")
    .option('--batch <file>', 'register every line of a CSV file (- for standard input)')
  loads(cli, enroll, async () => (await import('./node-enroll.ts')).nodeEnroll)

  const list = verb(node, 'list', 'List nodes: state, profile, certificate, last seen, conditions', [
    ['muster node list', ''],
    ['muster node list --state quarantined', ''],
    ['muster node list --recoverable', 'which nodes would recover without an operator, proven by rehearsal'],
    ['muster node list --recoverable no', 'who would not, and why'],
    ['muster node list --schedulable', 'where work may be placed'],
    ['muster node list --schedulable no', 'where it may not, and why'],
    ['muster node list -o json', 'for scripts'],
  ])
    .addOption(new Option('--state <state>', 'only nodes in this state').choices(membershipKinds))
    .option('--profile <name>', 'only nodes of this profile')
    .option('--vcluster <name>', 'only nodes in this vCluster; none: those in no vCluster')
    .addOption(
      new Option(
        '--recoverable [answer]',
        'which are proven to come back by themselves, and why the rest is not',
      ).choices(['yes', 'no']),
    )
    .addOption(
      new Option('--schedulable [answer]', 'where work may be placed, or where not and why')
        .choices(['yes', 'no'])
        .preset('yes'),
    )
  loads(cli, list, async () => (await import('./node-list.ts')).nodeList)

  const show = verb(node, 'show <id>', 'Everything known of a node, and why it is in the state it is in', [
    ['muster node show gpu-001', ''],
  ])
  loads(cli, show, async () => (await import('./node-show.ts')).nodeShow)

  const explain = verb(node, 'explain <id>', 'The story of a node: what failed, what was tried, what happens next', [
    ['muster node explain gpu-001', ''],
  ])
  loads(cli, explain, async () => (await import('./node-show.ts')).nodeExplain)

  const bundle = verb(
    node,
    'bundle <id>',
    'What a node joins with, ready for provisioning: cloud-init, env file or script',
    [
      ['muster node bundle gpu-001 --format env --out gpu-001.env', 'the agent is in the image already'],
      [
        'muster node bundle gpu-001 --format cloud-init --agent-url https://files.example/muster-agent.mjs --agent-file dist/muster-agent.mjs',
        'installs the agent by its digest',
      ],
      ['muster node bundle hpc-201 --format env', 'of a profile that joins by hardware: no secret, for the image'],
    ],
  )
    .addOption(
      new Option('--format <format>', 'what to make').choices(['cloud-init', 'env', 'script']).makeOptionMandatory(),
    )
    .option('--firmware <name>', 'a firmware profile that cloud-init applies first: slice-vm or baremetal')
    .option('--agent-url <url>', 'where the machine gets the agent: https, or a path on it')
    .option('--agent-file <file>', 'the agent to install, for its digest (npm run build:agent)')
    .option('--agent-sha256 <hex>', 'its digest')
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

  declareAssignment(node, cli)
  declareActions(node, cli)
  declareMachine(node, cli)
}

const declareMachine = (node: Command, cli: Cli): void => {
  const machine = verb(node, 'machine <id>', 'What a machine is and comes to; with options, report it', [
    ['muster node machine gpu-001', 'its SKU, or what is missing'],
    ['muster node machine gpu-001 --firmware slice-vm --slot gpu0=approved --slot gpu1=approved', ''],
    ['muster node machine gpu-001 --ready --evidence burn_in=passed', ''],
    ['muster node machine gpu-001 --slot gpu0=cleanup_blocked:"disk not wiped"', 'keeps work off the whole machine'],
  ])
    .option('--firmware <name>', 'the firmware profile it runs')
    .option('--slot <name=state>', 'a slot and its state, with :DETAIL if need be; may be repeated', collect)
    .option('--remove-slot <name>', 'a slot that is not there any more; may be repeated', collect)
    .option('--ready', 'the evidence says it is ready')
    .option('--no-ready', 'the evidence says it is not')
    .option('--evidence <name=value>', 'what that was read from; may be repeated', collect)
  loads(cli, machine, async () => (await import('./node-machine.ts')).nodeMachine)

  const provisioning = verb(
    node,
    'provisioning <id> <state>',
    'Say how far an adapter such as MAAS has brought a machine; none: no adapter looks after it',
    [
      ['muster node provisioning gpu-001 deploying --detail ubuntu/24.04', 'no work is placed there'],
      ['muster node provisioning gpu-001 deployed', ''],
    ],
  ).option('--detail <text>', 'what the adapter says about it')
  loads(cli, provisioning, async () => (await import('./node-machine.ts')).nodeProvisioning)

  const tag = verb(node, 'tag <id>', 'Put tags on a machine and take them off, in one step', [
    ['muster node tag gpu-001 --add h100 --add rack-7', ''],
    ['muster node tag gpu-001 --remove a100 --add h100', 'one hardware profile for another'],
  ])
    .option('--add <tag>', 'may be repeated', collect)
    .option('--remove <tag>', 'may be repeated', collect)
  loads(cli, tag, async () => (await import('./node-machine.ts')).nodeTag)
}

const declareAssignment = (node: Command, cli: Cli): void => {
  const assign = verb(node, 'assign <id...>', 'Put nodes that are in no vCluster into one', [
    ['muster node assign gpu-001 --to training', 'its agent starts what training runs'],
  ]).requiredOption('--to <vcluster>', 'where to')
  loads(cli, assign, async () => (await acts()).nodeAssign)

  const move = verb(node, 'move <id...>', 'Move nodes to another vCluster in one step; their certificates stay', [
    ['muster node move gpu-001 --to inference', 'refused while work runs there'],
    ['muster node move gpu-001 --to inference --force', 'takes its work from its owners'],
  ])
    .requiredOption('--to <vcluster>', 'where to')
    .option('--force', 'also with work on it, which is released')
  loads(cli, move, async () => (await acts()).nodeMove)

  const unassign = verb(node, 'unassign <id...>', 'Take nodes out of their vCluster, into maintenance mode', [
    ['muster node unassign gpu-001', 'its agent stops what the vCluster runs'],
  ]).option('--force', 'also with work on it, which is released')
  loads(cli, unassign, async () => (await acts()).nodeUnassign)
}

const declareActions = (node: Command, cli: Cli): void => {
  const drain = verb(node, 'drain <id...>', 'Let work on nodes end; they keep their identity', [
    ['muster node drain gpu-001', 'no new work; drained once its allocations have moved'],
    ['muster node drain gpu-001 gpu-002', 'a line each'],
    ['muster node drain gpu-001 --done', 'refused while allocations are on record there'],
  ]).option('--done', 'say that nothing runs there any more')
  loads(cli, drain, async () => (await acts()).nodeDrain)

  const health = verb(
    node,
    'health <id>',
    'Say how a node is: an unhealthy one gets no new work, and keeps its identity',
    [
      ['muster node health gpu-001 --unhealthy --reason "xid 79 on gpu 3"', ''],
      ['muster node health gpu-001 --ok', ''],
    ],
  )
    .option('--unhealthy', 'work should not be placed there')
    .option('--ok', 'it may be placed there again')
    .option('--reason <text>', 'what is wrong; goes into the journal')
  loads(cli, health, async () => (await acts()).nodeHealth)

  const undrain = verb(node, 'undrain <id...>', 'Take work on nodes again', [['muster node undrain gpu-001', '']])
  loads(cli, undrain, async () => (await acts()).nodeUndrain)

  const quarantine = verb(
    node,
    'quarantine <id...>',
    'Cut nodes off at once; they stay out until an operator releases them',
    [
      ['muster node quarantine gpu-001 --reason "odd traffic"', 'waits for the proof, and prints it'],
      ['muster node quarantine gpu-001 gpu-002 --reason "odd traffic"', 'each at once, a line each'],
    ],
  ).requiredOption('--reason <text>', 'why; goes into the journal')
  waits(quarantine)
  loads(cli, quarantine, async () => (await acts()).nodeQuarantine)

  const release = verb(node, 'release <id...>', 'End a quarantine; the node comes back in a new epoch', [
    ['muster node release gpu-001', ''],
  ])
  loads(cli, release, async () => (await acts()).nodeRelease)

  const approve = verb(node, 'approve <id...>', 'Say yes to a node: to its return, or to one more recovery', [
    ['muster node approve mesh-04', ''],
  ])
  loads(cli, approve, async () => (await acts()).nodeApprove)

  const deny = verb(node, 'deny <id...>', 'Deny a node its recovery; an approval undoes it', [
    ['muster node deny mesh-04', ''],
  ])
  loads(cli, deny, async () => (await acts()).nodeDeny)

  const settle = verb(node, 'settle <id>', 'Resolve a duplicate identity: keep the machine that is connected now', [
    ['muster node settle gpu-001 --reason "the copy was wiped"', ''],
  ]).requiredOption('--reason <text>', 'why; goes into the journal')
  loads(cli, settle, async () => (await acts()).nodeSettle)

  const repair = verb(
    node,
    'repair-bundle <id>',
    'Make a single-use emergency credential for a machine that cannot recover; quarantines the node',
    [['muster node repair-bundle gpu-001 --reason "recovery CA was stale" --out gpu-001.repair.json', '']],
  )
    .requiredOption('--reason <text>', 'why; goes into the journal')
    .requiredOption('--out <file>', 'write it there, readable by its owner only')
  loads(cli, repair, async () => (await import('./node-bundle.ts')).nodeRepairBundle)

  const revoke = verb(node, 'revoke [ids...]', 'Revoke the identity of a node, at once and for good', [
    ['muster node revoke gpu-001 --reason compromised', 'waits for the proof, and prints it'],
    ['muster node revoke gpu-001 --reason compromised --wait 1m', 'for peers that are away for a moment'],
    ['muster node revoke gpu-001 --reason stolen --reason-code key-compromise', 'CRLs and OCSP give this reason'],
    ['muster node revoke gpu-001 gpu-002 --reason stolen', 'shows what it would do to them, and how to do it'],
  ])
    .option('--reason <text>', 'why; goes into the journal')
    .addOption(
      new Option('--reason-code <code>', 'why, as CRLs and OCSP say it (default: unspecified)').choices(
        revocationReasons,
      ),
    )
  onlyPlans(waits(revoke), ofSeveral)
  loads(cli, revoke, async () => (await acts()).nodeRevoke)

  const decommission = verb(node, 'decommission [ids...]', 'Retire a node that is no longer in use', [
    ['muster node decommission gpu-001', 'refused while it has sessions or allocations'],
    ['muster node decommission gpu-001 --force', 'cuts its sessions and takes its allocations from their owners'],
  ]).option('--force', 'even while it has sessions or allocations')
  onlyPlans(waits(decommission), ofSeveral)
  loads(cli, decommission, async () => (await acts()).nodeDecommission)

  const purge = verb(
    node,
    'purge [ids...]',
    'Remove what describes revoked nodes, once their certificates have ended; shows it first',
    [
      ['muster node purge gpu-001 --reason "asked for by its owner"', 'shows what would go and what would stay'],
      ['muster node purge --apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'does what was shown'],
    ],
  ).option('--reason <text>', 'why; goes into the journal')
  onlyPlans(purge, '')
  loads(cli, purge, async () => (await acts()).nodePurge)
}

const ofSeveral = 'given several nodes, '

/** Exit code 0 as soon as it is effective; the rest of the time is for peers. */
const waits = (command: Command): Command =>
  command
    .option('--wait <duration>', 'how long to wait for every replica and peer to confirm (default 10s)')
    .option('--no-wait', 'print what is known at once')
