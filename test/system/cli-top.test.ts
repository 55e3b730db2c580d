import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { startedCommand } from '../process/child.ts'
import { openPseudoTerminal } from '../process/pseudo-terminal.ts'
import { sharedPlane } from '../process/shared-plane.ts'
import type { Plane } from '../process/start-plane.ts'
import { tempFolder } from '../process/temp-folder.ts'

const plane = sharedPlane()

/** What a terminal is set to, in one line. */
const settings = 'echo "set: $(stty -a | tr "\\n" " ")"'

const viewerOf = async (running: Plane, folder: string): Promise<Record<string, string>> => {
  const file = path.join(folder, 'viewer.key')
  const { stdout } = await running.muster('key', 'create', path.basename(folder).toLowerCase(), '--role', 'viewer')
  fs.writeFileSync(file, stdout, { mode: 0o600 })
  return { MUSTER_DATA: running.data, MUSTER_KEY_FILE: file }
}

const leavesScreen = '\u001b[?7h\u001b[?25h\u001b[?1049l'

/** The settings of the terminal before and after the command are the same. */
const assertRestored = (output: string): void => {
  const shown = [...output.matchAll(/^set: (.*?)\r?$/gm)].map(([, set]) => set)
  assert.equal(shown.length, 2, output)
  assert.equal(shown[0], shown[1])
  assert.ok(output.includes(leavesScreen))
}

test('top shows what happens in the fleet until q, follows the size of the terminal, and leaves it as it was', async (t) => {
  if (withPeer(t, 'script') === null) return
  const env = await viewerOf(plane(), tempFolder(t))
  const command = `stty cols 90 rows 16; ${settings}; tty; '${startedCommand}' top --every 1s; echo "ended $?"; ${settings}`
  const terminal = openPseudoTerminal(t, command, env)
  await terminal.shows(/journal, newest first/)
  await plane().muster('node', 'enroll', 'gpu-001')
  await terminal.shows(/node\.registered +gpu-001/)
  const tty = /^(\/dev\/pts\/\d+)\r?$/m.exec(terminal.output())?.[1]
  assert.ok(tty !== undefined, terminal.output())
  execFileSync('stty', ['-F', tty, 'cols', '40', 'rows', '10'])
  await terminal.shows(/\[2J/)
  await terminal.shows(/certificates/)
  execFileSync('stty', ['-F', tty, 'cols', '90', 'rows', '16'])
  terminal.type('q')
  await terminal.shows(/ended 0/)
  await terminal.ended
  assertRestored(terminal.output())
})

test('top leaves the terminal as it was also when it is told to stop, or its key is withdrawn', async (t) => {
  if (withPeer(t, 'script') === null) return
  const folder = tempFolder(t)
  const env = await viewerOf(plane(), folder)
  const shell = (): string =>
    `${settings}; sh -c 'echo "pid $$"; exec "${startedCommand}" top --every 1s'; echo "ended $?"; ${settings}`
  const stopped = openPseudoTerminal(t, shell(), env)
  await stopped.shows(/journal, newest first/)
  process.kill(Number(/pid (\d+)/.exec(stopped.output())?.[1]), 'SIGTERM')
  await stopped.shows(/ended 0/)
  await stopped.ended
  assertRestored(stopped.output())

  const refused = openPseudoTerminal(t, shell(), env)
  await refused.shows(/journal, newest first/)
  const { stdout } = await plane().muster('key', 'list', '-o', 'json')
  const { keys } = JSON.parse(stdout) as { keys: { id: string; role: string; revoked_at: string | null }[] }
  for (const { id, role } of keys.filter((key) => key.revoked_at === null))
    if (role === 'viewer') await plane().muster('key', 'revoke', id)
  await refused.shows(/error OPERATOR_KEY_INVALID/)
  await refused.shows(/ended 4/)
  await refused.ended
  assertRestored(refused.output())
})

test('Ctrl-Z gives the terminal back to the shell, and fg shows the fleet again', async (t) => {
  if (withPeer(t, 'script') === null) return
  const env = await viewerOf(plane(), tempFolder(t))
  const jobs = `'${startedCommand}' top --every 1s; echo "stopped $?"; ${settings}; fg; echo "ended $?"`
  const file = path.join(tempFolder(t), 'jobs.sh')
  fs.writeFileSync(file, `${settings}\n${jobs}\n`)
  const terminal = openPseudoTerminal(t, `bash -m '${file}'`, env)
  await terminal.shows(/journal, newest first/)
  terminal.type('\x1a')
  await terminal.shows(/stopped 148/)
  await terminal.shows(/^set: .*\r\n/m)
  assertRestored(terminal.output())
  await terminal.shows(/journal, newest first/)
  terminal.type('q')
  await terminal.shows(/ended 0/)
  await terminal.ended
})

test('a terminal without a screen gets one frame, and times that make no sense are refused', async (t) => {
  if (withPeer(t, 'script') === null) return
  const env = await viewerOf(plane(), tempFolder(t))
  const dumb = openPseudoTerminal(t, `'${startedCommand}' top; echo "ended $?"`, {
    ...env,
    TERM: 'dumb',
    NO_COLOR: '1',
  })
  await dumb.shows(/journal, newest first/)
  await dumb.shows(/ended 0/)
  assert.ok(!dumb.output().includes('\u001b'))
  for (const every of ['0s', '30d']) assert.equal((await plane().muster('top', '--every', every)).code, 2)
})

test('without a terminal top prints one frame with a viewer key and ends', async (t) => {
  const env = await viewerOf(plane(), tempFolder(t))
  const frame = await plane().musterWith({ env }, 'top')
  assert.equal(frame.code, 0, frame.stderr)
  assert.match(frame.stdout, new RegExp(`^muster top  ${plane().domain}  `))
  assert.match(frame.stdout, /^nodes +\d+ +0 active/m)
  assert.ok(!frame.stdout.includes('\u001b'))
  const { stdout } = await plane().musterWith({ env }, 'top', '-o', 'json')
  assert.equal((JSON.parse(stdout) as { replicas: number }).replicas, 1)
})

test('the log is text on a terminal and JSON elsewhere or where that is asked for', async (t) => {
  if (withPeer(t, 'script') === null) return
  const listen = ['node', 'recovery', 'operator', 'status'].map((name) => `--${name}-listen 127.0.0.1:0`).join(' ')
  const run = (more: string): string =>
    `'${startedCommand}' plane --data '${path.join(tempFolder(t), 'data')}' ${listen} ${more}`
  const people = openPseudoTerminal(t, run(''), { NO_COLOR: '1' })
  await people.shows(
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d info  plane: issued a server certificate  serial=[0-9a-f]+ purpose=recovery why="first one"\r?$/m,
  )
  people.type('\x03')
  await people.shows(/info  plane: stopping/)
  assert.ok(!people.output().includes('"level"'))
  const programs = openPseudoTerminal(t, run('--log json'))
  await programs.shows(/^\{"level":30,.*"msg":"issued a server certificate"\}\r?$/m)
})
