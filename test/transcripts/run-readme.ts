// Follows README.md, or another page, on separate hosts, as a person with several terminals does.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { eventually, within } from '../process/eventually.ts'
import type { SeparateHost } from '../process/separate-host.ts'
import { linesOf, missing } from './match-lines.ts'
import type { ReadmeStep } from './readme-steps.ts'
import { everything, startShellCommand, type Shell, type ShellCommand } from './shell-command.ts'

/** In fair time (fair-time.ts): only what never ends takes so long. */
const stepMs = 60_000
const endMs = 15_000

/** A host, and the folder its terminals are in. */
export type ReadmeHost = { readonly host: SeparateHost; readonly folder: string }

export const runReadme = async (
  t: Scope,
  steps: readonly ReadmeStep[],
  hosts: Readonly<Record<string, ReadmeHost>>,
): Promise<void> => {
  const terminals = new Map<string, ShellCommand>()
  for (const step of steps) {
    const place = hosts[step.host]
    assert.ok(place, `${step.page}:${step.line}: there is no host ${step.host}`)
    const terminal = `${step.host} ${step.terminal ?? `of line ${step.line}`}`
    const before = terminals.get(terminal) ?? null
    const all = [...terminals.values()]
    try {
      if (step.command === null) {
        assert.ok(before, `nothing has run in ${terminal}`)
        await (step.expects.kind === 'end' ? hasEnded : hasSaid)(before, step)
        continue
      }
      await freeTerminal(before, step)
      if (step.command.startsWith('scp ')) carry(step.command, place, hosts)
      else if (step.expects.kind === 'end' && step.expects.again) await repeat(t, place, step)
      else {
        const command = startIn(t, place, step)
        terminals.set(terminal, command)
        all.unshift(command)
        await (step.expects.kind === 'end' ? hasEnded : hasSaid)(command, step)
      }
    } catch (error) {
      throw new Error(`${step.page}:${step.line}\n${all.map(everything).join('\n')}`, { cause: error })
    }
  }
}

const startIn = (t: Scope, place: ReadmeHost, { page, line, command, host }: ReadmeStep): ShellCommand => {
  const started = startShellCommand(shellOf(place), runnable(command ?? ''), `${page}:${line} on ${host}`, endMs)
  cleanup(t, () => started.stop())
  return started
}

/** The packages are there: to fetch them again takes a network that the hosts do not have. */
const runnable = (command: string): string => command.replace(/^npm ci && /, '')

const shellOf = ({ host, folder }: ReadmeHost): Shell => ({
  wrapper: host.wrapper(folder),
  folder: '/',
  environment: host.environment,
  flags: ['-e', '-o', 'pipefail'],
})

/** A command that blocks its terminal has to be known to do so: the page has to say Ctrl-C before it goes on there. */
const freeTerminal = async (before: ShellCommand | null, { afterCtrlC }: ReadmeStep): Promise<void> => {
  assert.equal(before !== null && !before.hasEnded(), afterCtrlC, 'something runs in the terminal')
  if (before === null || !afterCtrlC) return
  before.interrupt()
  await within(`${before.where} to end after Ctrl-C`, endMs, before.ended)
}

const linesOfBoth = (command: ShellCommand): string[] => [...linesOf(command.stdout()), ...linesOf(command.stderr())]

const hasSaid = async (command: ShellCommand, { expects, shows }: ReadmeStep): Promise<void> => {
  const until = expects.kind === 'stay' ? expects.until : ''
  const lacks = (): string | null =>
    linesOfBoth(command).some((line) => line.includes(until)) ? missing(shows, linesOfBoth(command)) : until
  await eventually('what is written', () => command.hasEnded() || lacks() === null, { withinMs: stepMs }).catch(() =>
    assert.fail(`it did not say within ${stepMs} ms: ${lacks()}`),
  )
  assert.equal(lacks(), null, 'it has ended, and did not say')
  assert.equal(command.hasEnded(), false, 'it has ended')
}

const hasEnded = async (command: ShellCommand, { expects, shows }: ReadmeStep): Promise<void> => {
  const code = await within('its end', stepMs, command.ended).catch(() =>
    assert.fail([`it still runs after ${stepMs} ms:`, ...command.running()].join('\n  ')),
  )
  assert.equal(code, expects.kind === 'end' ? expects.exit : 0, 'exit code')
  const lacks = missing(shows, linesOfBoth(command))
  assert.equal(lacks, null, `what it shows:\n${linesOfBoth(command).join('\n')}`)
}

/** As a person does who has read that something takes a few seconds. */
const repeat = async (t: Scope, place: ReadmeHost, step: ReadmeStep): Promise<void> => {
  let last: unknown
  const tryOnce = async (): Promise<boolean> => {
    try {
      await hasEnded(startIn(t, place, step), step)
      return true
    } catch (error) {
      last = error
      return false
    }
  }
  await eventually('what is written', tryOnce, { withinMs: stepMs }).catch(() => {
    throw last
  })
}

/** `scp FILE... HOST:FOLDER`: the one thing that is no process of a host, since the test alone can see two of them. */
const carry = (command: string, from: ReadmeHost, hosts: Readonly<Record<string, ReadmeHost>>): void => {
  const [, files = '', name = '', folder = ''] = /^scp (.+) ([\w-]+):(\S*)$/.exec(command) ?? []
  const to = hosts[name]
  assert.ok(to !== undefined && files !== '', `not understood: ${command}`)
  const pack = [...shellOf(from).wrapper, 'tar', '--dereference', "--transform='s,.*/,,'", '-cf', '-', files]
  const unpack = [...shellOf(to).wrapper, 'tar', '-C', `./${folder}`, '-xf', '-']
  execFileSync('bash', ['-o', 'pipefail', '-c', `${pack.join(' ')} | ${unpack.join(' ')}`], {
    env: from.host.environment,
    stdio: 'pipe',
    timeout: stepMs,
  })
}
