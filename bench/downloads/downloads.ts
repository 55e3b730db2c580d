// Machines that fetch the agent, each a curl with a token and an address of its own.

import { spawn, type ChildProcess } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { cleanup, type Scope } from '../../test/process/cleanup.ts'
import { eventually } from '../../test/process/eventually.ts'
import type { Contender } from '../storm/contender.ts'

export type Downloads = {
  /** Bytes, of all of them. */
  received(): number
  stop(): Promise<void>
}

let made = 0

/** When it returns, all of them receive. */
export const startDownloads = async (
  t: Scope,
  { plane }: Pick<Contender, 'plane'>,
  url: string,
  count: number,
): Promise<Downloads> => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-bench-'))
  cleanup(t, () => fs.rmSync(folder, { recursive: true, force: true }))
  const roots = path.join(folder, 'roots.pem')
  fs.writeFileSync(roots, plane.rootPem)
  const each: { readonly child: ChildProcess; bytes: number }[] = []
  for (let at = 0; at < count; at++) {
    const { secret } = await plane.call('POST', '/v1/tokens', { node: `fetcher-${made++}` })
    const header = path.join(folder, `token-${at}`)
    fs.writeFileSync(header, `Authorization: Bearer ${String(secret)}\n`, { mode: 0o600 })
    const args = ['-q', '--silent', '--show-error', '--fail', '--cacert', roots, '--header', `@${header}`]
    const child = spawn('curl', [...args, '--interface', `127.0.0.${at + 10}`, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    cleanup(t, () => void child.kill())
    const one = { child, bytes: 0 }
    child.stdout.on('data', (chunk: Buffer) => (one.bytes += chunk.length))
    each.push(one)
  }
  await eventually('every machine to receive', () => each.every(({ bytes }) => bytes > 0) || null, { withinMs: 60_000 })
  return {
    received: () => each.reduce((sum, { bytes }) => sum + bytes, 0),
    async stop() {
      await Promise.all(
        each.map(
          ({ child }) =>
            new Promise<void>((resolve) => {
              child.once('exit', () => resolve())
              if (child.exitCode !== null || !child.kill()) resolve()
            }),
        ),
      )
    },
  }
}
