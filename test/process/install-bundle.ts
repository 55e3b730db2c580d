// Runs the script of a bundle as provisioning would, into a folder that stands for the file system of a machine.

import { spawn } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { Scope } from './cleanup.ts'
import { tempFolder } from './temp-folder.ts'

export type Installed = { readonly root: string; readonly code: number; readonly stderr: string }

export type InstallOptions = {
  /** Left out: a new and empty one. */
  readonly root?: string
  /** The image has an agent. */
  readonly withAgent?: true
  /** What runs it; left out: sh. The file of the script and the root come behind it. */
  readonly command?: readonly [string, ...string[]]
  /** Called with all that it has said so far. */
  readonly onSaid?: (stderr: string) => void
}

export const installed = (t: Scope, script: string, options: InstallOptions = {}): Promise<Installed> => {
  const folder = tempFolder(t)
  const root = options.root ?? path.join(folder, 'image')
  const file = path.join(folder, 'install.sh')
  fs.mkdirSync(root, { recursive: true })
  if (options.withAgent === true) {
    fs.mkdirSync(path.join(root, 'usr/bin'), { recursive: true })
    fs.writeFileSync(path.join(root, 'usr/bin/muster'), '#!/bin/sh\n', { mode: 0o755 })
  }
  fs.writeFileSync(file, script, { mode: 0o700 })
  const env = { PATH: process.env['PATH'] ?? '', MUSTER_INSTALL_ROOT: root }
  const [command, ...args] = options.command ?? ['sh']
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args, file, root], { env, stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
      options.onSaid?.(stderr)
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ root, code: code ?? -1, stderr }))
  })
}
