// Verbs that act on nodes: on ids, or on what a selector chooses. What they do is loaded when it is called for.

import { Option, type Command } from 'commander'
import { revocationReasons } from '#domain/core/certificate.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { collect, loads, verb } from '#cli/kit/verb.ts'
import { selects } from './select-options.ts'

const acts = () => import('./node-act.ts')
const withdraws = () => import('./node-withdraw.ts')

export const declareActions = (node: Command, cli: Cli): void => {
  declareAssignment(node, cli)
  declareChanges(node, cli)
  declareReports(node, cli)
  declareWithdrawals(node, cli)
}

const declareAssignment = (node: Command, cli: Cli): void => {
  const assign = verb(node, 'assign [nodes...]', 'Put nodes that are in no vCluster into one', [
    ['muster node assign gpu-001 --to training', 'its agent starts what training runs'],
    ["muster node assign 'gpu-*' --vcluster none --to training", 'shows what it would do'],
  ]).option('--to <vcluster>', 'where to')
  loads(cli, selects(assign), async () => (await acts()).nodeAssign)

  const move = verb(node, 'move [nodes...]', 'Move nodes to another vCluster in one step; their certificates stay', [
    ['muster node move gpu-001 --to inference', 'refused while work runs there'],
    ['muster node move gpu-001 --to inference --force', 'takes its work from its owners'],
    ['muster node move --vcluster training --tag rack=7 --to inference --yes', 'all that match'],
  ])
    .option('--to <vcluster>', 'where to')
    .option('--force', 'also with work on it, which is released')
  loads(cli, selects(move), async () => (await acts()).nodeMove)

  const unassign = verb(node, 'unassign [nodes...]', 'Take nodes out of their vCluster, into maintenance mode', [
    ['muster node unassign gpu-001', 'its agent stops what the vCluster runs'],
  ]).option('--force', 'also with work on it, which is released')
  loads(cli, selects(unassign), async () => (await acts()).nodeUnassign)
}

const declareChanges = (node: Command, cli: Cli): void => {
  const drain = verb(node, 'drain [nodes...]', 'Drain nodes: place no new work on them, and let the running work end', [
    ['muster node drain gpu-001', 'no new work; drained once its allocations have moved'],
    ['muster node drain gpu-001 gpu-002', 'a line each'],
    ['muster node drain --from rack-7.txt --yes', 'names in a file'],
    ['muster node drain gpu-001 --done', 'refused while allocations are on record there'],
  ]).option('--done', 'say that nothing runs there any more')
  loads(cli, selects(drain), async () => (await acts()).nodeDrain)

  const undrain = verb(node, 'undrain [nodes...]', 'End a drain: nodes take new work again', [
    ['muster node undrain gpu-001', ''],
  ])
  loads(cli, selects(undrain), async () => (await acts()).nodeUndrain)

  const release = verb(node, 'release [nodes...]', 'End a quarantine; the node comes back in a new epoch', [
    ['muster node release gpu-001', ''],
    ["muster node release 'gpu-*' --state quarantined --yes", ''],
  ])
  loads(cli, selects(release), async () => (await acts()).nodeRelease)

  const approve = verb(node, 'approve [nodes...]', 'Approve the return of a node, or one more recovery', [
    ['muster node approve mesh-04', ''],
    ['muster node approve --condition needs_approval --profile mesh-paas', 'shows which'],
  ])
  loads(cli, selects(approve), async () => (await acts()).nodeApprove)

  const deny = verb(node, 'deny [nodes...]', 'Deny a node its recovery; an approval undoes it', [
    ['muster node deny mesh-04', ''],
  ])
  loads(cli, selects(deny), async () => (await acts()).nodeDeny)

  const settle = verb(
    node,
    'settle [nodes...]',
    'Resolve a duplicate identity: keep the machine that is connected now',
    [
      ['muster node settle gpu-001 --reason "the copy was wiped"', ''],
      ['muster node settle --condition duplicate_identity --tag rack=7 --reason "restored twice"', 'shows which'],
    ],
  ).option('--reason <text>', 'why; goes into the journal')
  loads(cli, selects(settle), async () => (await acts()).nodeSettle)
}

const declareReports = (node: Command, cli: Cli): void => {
  const health = verb(
    node,
    'health [nodes...]',
    'Report the health of nodes: an unhealthy one gets no new work, and keeps its identity',
    [
      ['muster node health gpu-001 --unhealthy --reason "xid 79 on gpu 3"', ''],
      ['muster node health gpu-001 --ok', ''],
      ['muster node health --tag rack=7 --unhealthy --reason "no cooling"', 'shows which'],
    ],
  )
    .option('--unhealthy', 'work should not be placed there')
    .option('--ok', 'it may be placed there again')
    .option('--reason <text>', 'what is wrong; goes into the journal')
  loads(cli, selects(health), async () => (await acts()).nodeHealth)

  const provisioning = verb(
    node,
    'provisioning [words...]',
    'Report how far an adapter such as MAAS has provisioned machines; none: no adapter manages them',
    [
      ['muster node provisioning gpu-001 deploying --detail ubuntu/24.04', 'no work is placed there'],
      ['muster node provisioning gpu-001 deployed', ''],
      ["muster node provisioning 'gpu-*' deployed --yes", ''],
    ],
  )
    .usage('[nodes...] <state> [options]')
    .option('--detail <text>', 'what the adapter says about it')
  loads(cli, selects(provisioning), async () => (await acts()).nodeProvisioning)

  const tag = verb(node, 'tag [nodes...]', 'Put tags on machines and take them off, in one step', [
    ['muster node tag gpu-001 --add h100 --add rack=7', 'a filter finds it: --tag rack=7'],
    ['muster node tag gpu-001 --remove a100 --add h100', 'one hardware profile for another'],
    ["muster node tag 'gpu-0*' --add rack=7", 'shows which'],
  ])
    .option('--add <tag>', 'KEY or KEY=VALUE; may be repeated', collect)
    .option('--remove <tag>', 'KEY or KEY=VALUE; may be repeated', collect)
  loads(cli, selects(tag), async () => (await acts()).nodeTag)
}

const declareWithdrawals = (node: Command, cli: Cli): void => {
  const quarantine = verb(
    node,
    'quarantine [nodes...]',
    'Cut nodes off at once; they stay out until an operator releases them',
    [
      ['muster node quarantine gpu-001 --reason "odd traffic"', 'waits for the proof, and prints it'],
      ['muster node quarantine gpu-001 gpu-002 --reason "odd traffic"', 'each at once, a line each'],
      ['muster node quarantine --vcluster training --reason "odd traffic"', 'shows which, and what they lose'],
    ],
  ).option('--reason <text>', 'why; goes into the journal')
  loads(cli, selects(waits(quarantine)), async () => (await withdraws()).nodeQuarantine)

  const repair = verb(
    node,
    'repair-bundle <id>',
    'Make a single-use emergency credential for a machine that cannot recover; quarantines the node',
    [['muster node repair-bundle gpu-001 --reason "recovery CA was stale" --out gpu-001.repair.json', '']],
  )
    .requiredOption('--reason <text>', 'why; goes into the journal')
    .requiredOption('--out <file>', 'write it there, readable by its owner only')
  loads(cli, repair, async () => (await import('./node-bundle.ts')).nodeRepairBundle)

  const revoke = verb(node, 'revoke [nodes...]', 'Revoke the identity of a node, at once and for good', [
    ['muster node revoke gpu-001 --reason compromised', 'waits for the proof, and prints it'],
    ['muster node revoke gpu-001 --reason compromised --wait 1m', 'for peers that are away for a moment'],
    ['muster node revoke gpu-001 --reason stolen --reason-code key-compromise', 'CRLs and OCSP give this reason'],
    ['muster node revoke gpu-001 gpu-002 --reason stolen', 'shows what it would do to them, and how to do it'],
    ["muster node revoke 'gpu-*' --tag rack=7 --reason stolen --yes", 'does it at once'],
  ])
    .option('--reason <text>', 'why; goes into the journal')
    .addOption(
      new Option('--reason-code <code>', 'why, as CRLs and OCSP say it (default: unspecified)').choices(
        revocationReasons,
      ),
    )
  onlyPlans(selects(waits(revoke)), ofSeveral)
  loads(cli, revoke, async () => (await withdraws()).nodeRevoke)

  const decommission = verb(node, 'decommission [nodes...]', 'Retire a node that is no longer in use', [
    ['muster node decommission gpu-001', 'refused while it has sessions or allocations'],
    ['muster node decommission gpu-001 --force', 'cuts its sessions and takes its allocations from their owners'],
  ]).option('--force', 'even while it has sessions or allocations')
  onlyPlans(selects(waits(decommission)), ofSeveral)
  loads(cli, decommission, async () => (await withdraws()).nodeDecommission)

  const purge = verb(
    node,
    'purge [nodes...]',
    'Remove what describes revoked nodes, once their certificates have ended; shows it first',
    [
      ['muster node purge gpu-001 --reason "asked for by its owner"', 'shows what would go and what would stay'],
      ["muster node purge 'gpu-*' --reason sold", 'of those that match, the revoked ones'],
      ['muster node purge --apply 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'does what was shown'],
    ],
  ).option('--reason <text>', 'why; goes into the journal')
  onlyPlans(selects(purge), '')
  loads(cli, purge, async () => (await withdraws()).nodePurge)
}

const ofSeveral = 'given several nodes, '

/** For commands that make a plan also of ids, always or of several. */
const onlyPlans = (command: Command, when: string): Command =>
  command.addHelpText('after', `Exit code ${exitCodes.onlyPlanned}: ${when}nothing was done, a plan was made`)

/** Exit code 0 as soon as it is effective; the rest of the time is for peers. */
const waits = (command: Command): Command =>
  command
    .option('--wait <duration>', 'how long to wait for every replica and peer to confirm (default 10s)')
    .option('--no-wait', 'print what is known at once')
