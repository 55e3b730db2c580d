// The WireGuard interface of this machine: of the kernel where that can, else of a wireguard-go that is our own child. One
// that is there already, from before a restart, is taken over as it is; what it has that is not ours goes with the first
// `sync`. Everything throws a WireguardFault that says what to do.

import { readFileIfAny } from '#platform/files.ts'
import { findProgram, runProgram, startResident, type Resident } from '#platform/run-program.ts'
import type { Timers } from '#platform/timers.ts'
import { sleep } from '#platform/timers.ts'
import { withUnlinkedFile } from '#platform/unlinked-file.ts'
import type { WireguardConfig } from '#wire/network/peers.ts'
import { trouble, type Trouble } from '#agent/core/trouble.ts'

export type LinkKind = 'kernel' | 'userspace'

/** What an interface would be made by here, as far as can be seen without making one. */
export const likelyLink = (): LinkKind | 'none' => {
  if (findProgram('wg') === null || findProgram('ip') === null) return 'none'
  if (readFileIfAny('/sys/module/wireguard/version') !== null) return 'kernel'
  return findProgram('wireguard-go') === null ? 'none' : 'userspace'
}

export type WireguardLink = {
  /** Makes it, if it is not there; `made`: it is new, and has nothing yet. */
  ensure(): Promise<{ readonly kind: LinkKind; readonly made: boolean }>
  remove(keys: readonly string[]): Promise<void>
  /** Exactly this key, port and peers. */
  sync(text: string): Promise<void>
  /** Up, with this address only, and the network routed into it. */
  address(config: WireguardConfig): Promise<void>
  /** Keys of those on it now. */
  peers(): Promise<ReadonlySet<string>>
  /** Removes the interface, also one that another process made. */
  takeDown(): Promise<void>
  /** An interface of the kernel stays as it is, and so does the traffic; our own child ends. */
  leave(): Promise<void>
}

export class WireguardFault extends Error {
  readonly trouble: Trouble
  constructor(what: Trouble) {
    super(what.text)
    this.trouble = what
  }
}

const commandMs = 10_000
const appearsWithinMs = 5_000
const lookEveryMs = 25
const stopWithinMs = 2_000
/** A command line has an end. */
const keysAtOnce = 200

const toInstall = 'Install what is missing (Debian: apt-get install iproute2 wireguard-tools wireguard-go)'

/**
 * `name`: of the interface. `unlinkedIn`: the folder for a file without a name when there is no room in memory; null: none.
 * `lost`: called when our child has ended unexpectedly.
 */
export const openWireguardLink = (
  timers: Timers,
  name: string,
  unlinkedIn: string | null,
  lost: (how: string) => void,
): WireguardLink => {
  let own: Resident | null = null

  const command = async (
    program: 'ip' | 'wg',
    args: readonly string[],
    input: number | null = null,
  ): Promise<string> => {
    const ran = await runProgram(program, args, { withinMs: commandMs, input })
    if (ran.kind === 'done') return ran.stdout
    if (ran.kind === 'not-installed') {
      throw fault('wireguard_not_installed', `There is no ${program} on this machine.`, toInstall)
    }
    throw fault('wireguard_failed', `${program} ${args.slice(0, 4).join(' ')}: ${ran.why}`, nextFor(ran.why))
  }
  const answers = async (): Promise<boolean> =>
    (await runProgram('wg', ['show', name, 'public-key'], { withinMs: commandMs, input: null })).kind === 'done'

  /** Null: there is no such interface, or its userspace process has ended. */
  const found = async (): Promise<LinkKind | null> => {
    const shown = await runProgram('ip', ['-j', '-d', 'link', 'show', 'dev', name], {
      withinMs: commandMs,
      input: null,
    })
    if (shown.kind === 'not-installed') await command('ip', [])
    if (shown.kind !== 'done') return null
    if (/"info_kind":"wireguard"/.test(shown.stdout)) return 'kernel'
    if (!/"info_kind":"tun"/.test(shown.stdout)) {
      const next = 'Give --wireguard the name of an interface of its own, such as muster0'
      throw fault('wireguard_interface_taken', `${name} is an interface of another kind.`, next)
    }
    return (await answers()) ? 'userspace' : null
  }

  const inUserspace = async (kernelSaid: string): Promise<LinkKind> => {
    if (findProgram('wireguard-go') === null) {
      const text = `The kernel has no WireGuard (${kernelSaid}), and wireguard-go is not installed.`
      throw fault('wireguard_not_installed', text, toInstall)
    }
    await own?.stop(stopWithinMs)
    const started = startResident('wireguard-go', ['-f', name], { LOG_LEVEL: 'error' })
    if (started === null) throw fault('wireguard_not_installed', 'wireguard-go is not installed.', toInstall)
    own = started
    void started.ended.then((how) => {
      if (own === started) lost(how)
    })
    for (let waitedMs = 0; waitedMs < appearsWithinMs && started.running(); waitedMs += lookEveryMs) {
      if (await answers()) return 'userspace'
      await sleep(timers, lookEveryMs)
    }
    own = null
    const why = started.running() ? 'it does not answer' : await started.ended
    await started.stop(stopWithinMs)
    throw fault('wireguard_failed', `wireguard-go ${name}: ${why}`, nextFor(why))
  }

  return {
    ensure: async () => {
      if (findProgram('wg') === null) await command('wg', [])
      const there = await found()
      if (there !== null) return { kind: there, made: false }
      const made = await runProgram('ip', ['link', 'add', 'dev', name, 'type', 'wireguard'], {
        withinMs: commandMs,
        input: null,
      })
      const kind = made.kind === 'done' ? 'kernel' : await inUserspace(made.kind === 'failed' ? made.why : 'no ip')
      return { kind, made: true }
    },
    remove: async (keys) => {
      for (let at = 0; at < keys.length; at += keysAtOnce) {
        const words = keys.slice(at, at + keysAtOnce).flatMap((key) => ['peer', key, 'remove'])
        await command('wg', ['set', name, ...words])
      }
    },
    sync: (text) =>
      withUnlinkedFile(
        text,
        unlinkedIn,
        async (fd) => void (await command('wg', ['syncconf', name, '/dev/stdin'], fd)),
      ),
    address: async ({ address, network, mtu }) => {
      await command('ip', ['link', 'set', 'dev', name, 'mtu', String(mtu), 'up'])
      await command('ip', ['-6', 'address', 'flush', 'dev', name, 'scope', 'global'])
      await command('ip', ['-6', 'address', 'add', `${address}/128`, 'dev', name, 'nodad'])
      await command('ip', ['-6', 'route', 'replace', network, 'dev', name])
    },
    peers: async () => new Set((await command('wg', ['show', name, 'peers'])).split('\n').filter(Boolean)),
    takeDown: async () => {
      // Where nothing can be found there is nothing of ours either.
      const there = await found().catch(() => null)
      const child = own
      own = null
      await child?.stop(stopWithinMs)
      // A wireguard-go takes its interface along; one of an earlier agent ends when the interface is gone.
      if (there !== null && child === null) await command('ip', ['link', 'delete', 'dev', name])
    },
    leave: async () => {
      const child = own
      own = null
      await child?.stop(stopWithinMs)
    },
  }
}

const fault = (code: string, text: string, next: string): WireguardFault =>
  new WireguardFault(trouble(code, text, next))

const nextFor = (why: string): string =>
  /not permitted|denied/i.test(why)
    ? 'Run the agent as root, or give it CAP_NET_ADMIN (and /dev/net/tun for wireguard-go)'
    : 'The agent retries automatically; to see more: wg show; ip -d link; journalctl -u muster-agent'
