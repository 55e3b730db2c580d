import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as path from 'node:path'
import { test } from 'node:test'
import type { Cli } from '#cli/kit/cli.ts'
import { tempFolder } from '../../../test/process/temp-folder.ts'
import { readSecret } from './secret-source.ts'

const cliWith = (env: Readonly<Record<string, string>>): Cli => ({ env }) as unknown as Cli

test('a secret is read from a file, a credential of systemd or the environment, without its last line break', async (t) => {
  const folder = tempFolder(t)
  fs.writeFileSync(path.join(folder, 'secret'), 'from a file\n')
  const cli = cliWith({ CREDENTIALS_DIRECTORY: folder, SECRET: 'from the environment' })
  assert.equal(await readSecret(cli, '--token', `file:${folder}/secret`), 'from a file')
  assert.equal(await readSecret(cli, '--token', 'credential:secret'), 'from a file')
  assert.equal(await readSecret(cli, '--token', 'env:SECRET'), 'from the environment')
})

test('what is no source is refused, and is not in the message: it may be the secret', async (t) => {
  const folder = tempFolder(t)
  const cli = cliWith({ CREDENTIALS_DIRECTORY: folder })
  const refused = async (source: string, why: RegExp, given = cli): Promise<void> => {
    await assert.rejects(readSecret(given, '--token', source), (error: Error) => {
      assert.match(JSON.stringify({ ...error, message: error.message }), why)
      return true
    })
  }
  await assert.rejects(
    readSecret(cli, '--token', 'hvs.canary'),
    (error: Error) => !JSON.stringify({ ...error, m: error.message }).includes('canary'),
  )
  await refused('credential:../etc/passwd', /takes the name of a credential/)
  await refused('credential:x', /no credentials of systemd/, cliWith({}))
  await refused('env:MISSING', /nothing in env:MISSING/)
})
