// `muster agent`: what its verbs are. What they do is in the files beside it, loaded when it is called for.

import { Option, type Command } from 'commander'
import type { Cli } from '#cli/kit/cli.ts'
import { noun, loads, verb } from '#cli/kit/verb.ts'

export const declareAgent = (agent: Command, cli: Cli): void => {
  noun(agent, [
    ['muster agent run --state ./n1 --join-file join', ''],
    ['muster agent status --state ./n1', ''],
  ])

  const run = verb(agent, 'run', 'Enrol if need be, then keep the identity of this machine alive', [
    ['muster token create --node gpu-001 | muster agent run --state ./n1 --join-file -', 'on one machine, to try it'],
    ['muster agent run', 'join string from MUSTER_JOIN or /etc/muster/join'],
    ['muster agent run --state ./n1', 'enrolled already: no join string is needed'],
  ])
    .option('--state <folder>', 'where keys and certificates are kept (MUSTER_AGENT_STATE)')
    .option('--join-file <file>', 'file with the join string (- for standard input); deleted after use')
    .addOption(new Option('--join-method <method>', 'how to prove this machine').choices(['token', 'hardware']))
    .addOption(
      new Option('--key-type <type>', 'kind of key to make, unless the profile allows others only').choices([
        'ed25519',
        'p256',
        'p384',
      ]),
    )
    .addOption(new Option('--key-storage <kind>', 'where keys are kept').choices(['file', 'memory']))
    .option('--node-id <id>', 'the name to ask for, with a token of the domain')
    .option('--hardware-file <file>', 'read the hardware identity from here (MUSTER_HARDWARE_FILE)')
    .addOption(
      new Option('--recovery <by>', 'what to come back with after an expiry').choices(['key', 'bearer', 'none']),
    )
    .option('--static-certificate <file>', 'from the image: shown to the network at enrollment, never an identity')
    .option('--static-key <file>', 'its key')
    .option('--metrics-listen <address>', 'show metrics on this loopback address (MUSTER_METRICS_LISTEN)')
    .option('--report-every <time>', 'how often to report to the plane (default 60s)')
    .option('--rehearse-every <time>', 'how often to rehearse the recovery, instead of what the profile says')
    .option(
      '--wireguard <interface>',
      'take part in the WireGuard network with an interface of this name, made by the kernel or by wireguard-go (MUSTER_WIREGUARD)',
    )
    .option(
      '--wireguard-endpoint <address...>',
      'ADDRESS[:PORT] where other nodes reach it, IPv4 and IPv6 once each (MUSTER_WIREGUARD_ENDPOINT, with commas)',
    )
    .option('--log-level <level>', 'trace, debug, info, warn, error or silent (MUSTER_LOG_LEVEL)')
  loads(cli, run, async () => (await import('./agent-run.ts')).agentRun)

  const status = verb(agent, 'status', 'What the agent on this machine is doing, and why', [
    ['muster agent status --state ./n1', ''],
  ]).option('--state <folder>', 'state folder of the agent (MUSTER_AGENT_STATE)')
  loads(cli, status, async () => (await import('./agent-look.ts')).showAgentStatus)

  const explain = verb(agent, 'explain', 'What failed, what was tried, what happens next; works without a network', [
    ['muster agent explain --state ./n1', 'also when the agent does not run'],
  ]).option('--state <folder>', 'state folder of the agent (MUSTER_AGENT_STATE)')
  loads(cli, explain, async () => (await import('./agent-look.ts')).agentExplain)

  const renew = verb(agent, 'renew', 'Say when the certificate is renewed, or have it renewed now', [
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

  const hardware = verb(agent, 'read-hardware', 'Print what this machine would be recognised by', [
    ['sudo muster agent read-hardware --out /run/muster-hardware.json', 'serial numbers are for root only'],
  ]).option('--out <file>', 'write it there, for agent run --hardware-file')
  loads(cli, hardware, async () => (await import('./agent-look.ts')).agentReadHardware)
}
