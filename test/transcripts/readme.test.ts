// The README, followed on hosts that share nothing but a cable: from a checkout to a second machine, nginx with a certificate, another
// name for the plane, a diskless machine and a revocation.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import { withPeer } from '../peers/peer.ts'
import { musterCommand, repository, startedCommand } from '../process/child.ts'
import { openNetworks } from '../process/network-namespaces.ts'
import { openSeparateHost, type HostOptions, type SeparateHost } from '../process/separate-host.ts'
import type { Scope } from '../process/cleanup.ts'
import { readmeSteps } from './readme-steps.ts'
import { runReadme } from './run-readme.ts'

const readme = fs.readFileSync(path.join(repository, 'README.md'), 'utf8')

/** Addresses as the README has them. */
const names = { 'plane.example.org': '192.0.2.10', 'gpu-002': '192.0.2.20', 'hpc-001': '192.0.2.30' }

/** Of the folders that a checkout has, those that are used. The packages stay where they are, and so does what tests start. */
const checkedOut = [
  'LICENSE',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'bin',
  'src',
  'scripts',
  'packaging',
]

const folder = 'checked-out'

const checkOut = (host: SeparateHost): void => {
  const copies = checkedOut.map((name) => `cp -r '${path.join(repository, name)}' ${folder}/`)
  const links = [
    `ln -s '${path.join(repository, 'node_modules')}' ${folder}/node_modules`,
    `ln -s '${startedCommand}' ${folder}/muster`,
  ]
  host.run([`mkdir ${folder}`, ...copies, ...links].join('\n'))
}

/** What the runner has built, and what Node has compiled of it. */
const builtFolders = startedCommand === musterCommand ? [] : [path.dirname(path.dirname(startedCommand))]

const openHosts = async (t: Scope) => {
  const network = openNetworks(t)
  const open = async (address: string, mac: string, options: HostOptions): Promise<SeparateHost> => {
    const machine = network.machine(address)
    await machine.run('ip', 'link', 'set', 'cable', 'address', mac)
    return openSeparateHost(t, machine, options)
  }
  const plane = await open(names['plane.example.org'], '02:4d:55:00:00:01', {
    name: 'plane',
    hosts: names,
    serial: 'SN100',
    shown: [repository],
    writable: builtFolders,
  })
  checkOut(plane)
  const second = await open(names['gpu-002'], '02:4d:55:00:00:02', { name: 'gpu-002', hosts: names, serial: 'SN102' })
  // As `apt-get install nginx` leaves it.
  second.run('nginx')
  const diskless = await open(names['hpc-001'], '02:4d:55:00:01:01', { name: 'hpc-001', hosts: names, serial: 'SN201' })
  for (const host of [second, diskless]) host.run(`[ -z "$(ls -A)" ] && [ ! -e '${repository}' ]`)
  return {
    plane: { host: withCompiled(plane), folder: path.join(plane.home, folder) },
    'gpu-002': { host: second, folder: second.home },
    'hpc-001': { host: diskless, folder: diskless.home },
  }
}

/** Commands start sooner with what others of the run have compiled. */
const withCompiled = (host: SeparateHost): SeparateHost => {
  const compiled = process.env['NODE_COMPILE_CACHE']
  return compiled === undefined ? host : { ...host, environment: { ...host.environment, NODE_COMPILE_CACHE: compiled } }
}

test('the README leads from nothing to a second machine, its certificates, a renamed plane and a revoked node', async (t) => {
  for (const name of ['ip', 'netns', 'unshare'] as const) if (withPeer(t, name) === null) return
  if (withPeer(t, 'nginx') === null || withPeer(t, 'curl') === null) return
  await runReadme(t, readmeSteps(readme), await openHosts(t))
})

test('a block of the README that nobody runs is found', () => {
  const block = '    ./muster node list\n'
  assert.throws(() => readmeSteps(`Text:\n\n${block}`), /README\.md:3 is a block of commands without a comment/)
  assert.throws(() => readmeSteps('<!-- on plane -->\n\nText\n'), /README\.md:1 is followed by no block/)
  assert.throws(() => readmeSteps(`<!-- on plane, quietly -->\n\n${block}`), /README\.md:1 is not understood: quietly/)
  assert.deepEqual(readmeSteps(`<!-- not run: it takes an hour -->\n\n${block}`), [])
  const [second] = readmeSteps(`<!-- on plane, line 2 -->\n\n${block}    ./muster alert list\n`)
  assert.equal(second?.command, './muster alert list')
  const shown = '```text\na  …\n…\n```\n'
  const [step, ...rest] = readmeSteps(
    `\`\`\`\n    no command\n\`\`\`\n\n<!-- on plane, ends with 3 -->\n\n${block}\n${shown}`,
  )
  assert.deepEqual(rest, [])
  assert.deepEqual(step, {
    page: 'README.md',
    line: 5,
    host: 'plane',
    terminal: null,
    afterCtrlC: false,
    command: './muster node list',
    expects: { kind: 'end', exit: 3, again: false },
    shows: ['a  {{.*}}', '...'],
  })
})
