// `muster agent`: what its verbs are. What they do is in the files beside it, loaded when it is called for.

import { Option, type Command } from 'commander'
import { agentSettings, usualAgentFile } from '#agent/core/settings.ts'
import { helperSettings } from '#agent/helper/settings.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { configOption, settingOptions } from '#cli/kit/setting-options.ts'
import { lists, noun, loads, verb } from '#cli/kit/verb.ts'
import { outputFileNames } from '#domain/programs/output.ts'

/** Where the helper finds them unless agent.toml says otherwise. */
const usualStatementKeys = '/etc/muster/statement-keys.pem'

export const declareAgent = (agent: Command, cli: Cli): void => {
  noun(agent, [
    ['muster agent run --state ./n1 --join-file join', ''],
    ['muster agent status --state ./n1', ''],
  ])

  const run = verb(agent, 'run', 'Enroll if need be, then keep the identity of this machine alive', [
    ['muster token create --node gpu-001 | muster agent run --state ./n1 --join-file -', 'on one machine, to try it'],
    ['muster agent run', 'join string from MUSTER_JOIN or /etc/muster/join'],
    ['muster agent run --state ./n1', 'enrolled already: no join string is needed'],
    ['muster agent run --check-config', 'what is set, by whom, and what is wrong with it'],
  ])
  settingOptions(configOption(run, 'MUSTER_AGENT_CONFIG', usualAgentFile), agentSettings)
  run.option('--check-config', 'say what is set and what is wrong with it, and start nothing')
  loads(cli, run, async () => (await import('./agent-run.ts')).agentRun)

  const status = verb(agent, 'status', 'Show what the agent on this machine is doing, and why', [
    ['muster agent status --state ./n1', ''],
  ]).option('--state <folder>', 'state folder of the agent (MUSTER_AGENT_STATE)')
  loads(cli, status, async () => (await import('./agent-look.ts')).showAgentStatus)

  const explain = verb(
    agent,
    'explain',
    'Explain what failed, what was tried and what happens next; works without a network',
    [['muster agent explain --state ./n1', 'also when the agent does not run']],
  ).option('--state <folder>', 'state folder of the agent (MUSTER_AGENT_STATE)')
  loads(cli, explain, async () => (await import('./agent-look.ts')).agentExplain)

  const renew = verb(agent, 'renew', 'Show when the certificate is renewed, or renew it now', [
    ['muster agent renew --now', 'ends every wait of the agent; answers when it is done'],
    ['muster agent renew', 'when it would renew without being asked'],
  ])
    .option('--state <folder>', 'state folder of the agent (MUSTER_AGENT_STATE)')
    .option('--now', 'do not wait for the time')
  loads(cli, renew, async () => (await import('./agent-renew.ts')).agentRenew)

  const repair = verb(agent, 'repair', 'Give the agent a repair bundle that an operator has made for this node', [
    ['muster agent repair --bundle-file gpu-001.repair.json', 'the agent uses it within a second, and deletes it'],
    ['muster agent repair --bundle-file - < gpu-001.repair.json', 'from standard input'],
  ])
    .option('--bundle-file <file>', 'the bundle (- for standard input)')
    .option('--state <folder>', 'state folder of the agent (MUSTER_AGENT_STATE)')
  loads(cli, repair, async () => (await import('./agent-renew.ts')).agentRepair)

  declareAgentCert(agent, cli)

  const helper = verb(
    agent,
    'helper',
    'Run the helper: does what needs more rights than the agent has, as far as agent.toml allows',
    [
      ['muster agent helper --check', 'what agent.toml allows, or what is wrong with it'],
      ['muster agent helper --config ./agent.toml --socket ./run/socket', 'by hand, as an ordinary user'],
      ['muster agent helper --print-unit', 'the directories of this host, for its systemd unit'],
    ],
  )
  settingOptions(helper, helperSettings)
  helper
    .option('--check', 'read agent.toml, say what it allows, and end')
    .option('--check-config', 'say what is set and what is wrong with it, and start nothing')
    .option('--print-unit', 'print what its systemd unit needs on this host, and end')
  loads(cli, helper, async () => (await import('./agent-privileged.ts')).agentHelper)

  const trust = verb(agent, 'trust', 'Lay down, as root, the keys that this host trusts for tasks and services', [
    ['muster ca bundle --statements > statement-keys.pem', 'where the plane can be reached'],
    ['sudo muster agent trust --statements statement-keys.pem', 'on the host; the helper pins them from there'],
  ])
    .option('--statements <file>', 'the public keys of muster ca bundle --statements (- for standard input)')
    .addOption(new Option('--to <file>', 'where agent.toml says that they are').default(usualStatementKeys))
  loads(cli, trust, async () => (await import('./agent-trust.ts')).agentTrust)

  const hardware = verb(agent, 'read-hardware', 'Print what this machine would be recognised by', [
    [
      'sudo muster agent read-hardware --out /run/muster-agent-hardware/hardware.json',
      'serial numbers are for root only',
    ],
  ]).option(
    '--out <file>',
    'write it there, for agent run --hardware-file; readable by its owner, and by the group of a folder that others cannot enter',
  )
  loads(cli, hardware, async () => (await import('./agent-look.ts')).agentReadHardware)
}

const declareAgentCert = (agent: Command, cli: Cli): void => {
  const cert = noun(agent.command('cert').description('The certificates of the programs on this machine'), [
    ['muster agent cert list', ''],
    ['muster agent cert path web', ''],
  ])
  const folder = ['--state <folder>', 'state folder of the agent (MUSTER_AGENT_STATE)'] as const

  const list = verb(cert, 'list', 'List the outputs of this node, with their certificates and state', [
    ['muster agent cert list', ''],
    ['muster agent cert list -o json', 'for programs'],
  ]).option(...folder)
  loads(cli, lists(list), async () => (await import('./agent-cert.ts')).agentCertList)

  const show = verb(cert, 'show <output>', 'Show one output: its certificate, its files, and what is wrong', [
    ['muster agent cert show web', ''],
    ['muster agent cert show web -o json', 'for programs'],
  ]).option(...folder)
  loads(cli, show, async () => (await import('./agent-cert.ts')).agentCertShow)

  const place = verb(cert, 'path <output>', 'Print the folder that the program reads, or one file of it', [
    ['muster agent cert path web', 'for a configuration: it stays the same over all renewals'],
    ['openssl x509 -noout -text -in "$(muster agent cert path web --file cert.pem)"', ''],
  ])
    .addOption(new Option('--file <name>', 'the path of this file').choices([...outputFileNames]))
    .option(...folder)
  loads(cli, place, async () => (await import('./agent-cert.ts')).agentCertPath)
}
