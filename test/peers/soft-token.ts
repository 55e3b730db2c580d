// Tokens of SoftHSM, in a folder of their own. They are pulled by moving them away.

import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { TestContext } from 'node:test'
import { cleanup, type Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { withPeer } from './peer.ts'

export type SoftTokens = {
  /** The file of the PKCS#11 module. */
  readonly module: string
  /** With the PIN of every token. */
  readonly pinFile: string
  readonly pin: string
  /** For processes that are to see the tokens. This process sees them until the end of the test. */
  readonly env: { readonly SOFTHSM2_CONF: string }
  pull(): void
  putBack(): void
}

/** Long enough that it is nowhere by chance. */
export const pin = 'of-the-test-271828'

/** Null after the test has been skipped. */
export const softTokens = (t: TestContext, ...labels: readonly string[]): SoftTokens | null => {
  const module = withPeer(t, 'softhsm')
  const tool = withPeer(t, 'softhsm2-util')
  return module === null || tool === null ? null : makeTokens(t, { module, tool }, labels)
}

type Programs = { readonly module: string; readonly tool: string }

export const makeTokens = (t: Scope, { module, tool }: Programs, labels: readonly string[]): SoftTokens => {
  const folder = tempFolder(t)
  const [tokens, away] = [path.join(folder, 'tokens'), path.join(folder, 'away')]
  fs.mkdirSync(tokens)
  const conf = path.join(folder, 'softhsm2.conf')
  fs.writeFileSync(conf, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`)
  const env = { SOFTHSM2_CONF: conf }
  const pinFile = path.join(folder, 'pin')
  fs.writeFileSync(pinFile, `${pin}\n`, { mode: 0o600 })
  for (const label of labels) {
    const args = ['--init-token', '--free', '--label', label, '--so-pin', '314159', '--pin', pin]
    execFileSync(tool, args, { env: { ...process.env, ...env }, stdio: 'pipe' })
  }
  const before = process.env['SOFTHSM2_CONF']
  process.env['SOFTHSM2_CONF'] = conf
  cleanup(t, () => {
    if (before === undefined) delete process.env['SOFTHSM2_CONF']
    else process.env['SOFTHSM2_CONF'] = before
  })
  return {
    ...{ module, pinFile, pin, env },
    pull() {
      fs.renameSync(tokens, away)
      fs.mkdirSync(tokens)
    },
    putBack() {
      fs.rmdirSync(tokens)
      fs.renameSync(away, tokens)
    },
  }
}
