// The command line in this process, talking to a real operator listener over its socket.

import * as fs from 'node:fs'
import * as path from 'node:path'
import type { TestContext } from 'node:test'
import type { Cli } from '#cli/kit/cli.ts'
import { runCli } from '#cli/kit/run-cli.ts'
import type { Role } from '#domain/core/principal.ts'
import { testCli } from '../fakes/test-cli.ts'
import { setUpOperatorServer, type OperatorSetup } from './operator-setup.ts'

export type Said = { readonly code: number; readonly out: string; readonly err: string }

export type CliSetup = OperatorSetup & {
  /** As platform-admin, unless `MUSTER_KEY_FILE` says otherwise. */
  muster(...args: string[]): Promise<Said>
  musterWith(
    given: { input?: string; env?: Record<string, string>; openHttp?: Cli['openHttp'] },
    ...args: string[]
  ): Promise<Said>
  keyFile(role: Role): string
}

export const setUpCli = async (t: TestContext): Promise<CliSetup> => {
  const plane = await setUpOperatorServer(t)
  const keyFile = (role: Role): string => {
    const file = path.join(plane.folder, `${role}.key`)
    fs.writeFileSync(file, `${plane.keys[role]}\n`, { mode: 0o600 })
    return file
  }
  const env = { MUSTER_DATA: plane.folder, MUSTER_KEY_FILE: keyFile('platform-admin') }
  const musterWith: CliSetup['musterWith'] = async (given, ...args) => {
    const { cli, stdout, stderr } = testCli({
      nowMs: plane.clock.nowMs(),
      env: { ...env, ...given.env },
      input: given.input ?? '',
      ...(given.openHttp === undefined ? {} : { openHttp: given.openHttp }),
    })
    const code = await runCli(args, cli)
    return { code, out: stdout(), err: stderr() }
  }
  return { ...plane, muster: (...args) => musterWith({}, ...args), musterWith, keyFile }
}
