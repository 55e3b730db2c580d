// The commands for Vault that a page shows, read by a shell as a reader's would be, and made as the calls of the API that Vault's own command
// line makes of them. (Vault's command line is another 1,000 packages to build.)

import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as path from 'node:path'
import type { VaultAnswer, VaultPeer } from './vault-server.ts'

/** Each command is a record: its words, and behind a form feed what came on standard input. */
const prelude = String.raw`vault() { for word in "$@"; do printf '%s\0' "$word"; done
  printf '\f'; case "$word" in -) cat;; esac; printf '\v'; }`

/** What each of them was answered. Fails where Vault refuses one. `files`: where `@FILE` is looked for. */
export const runVaultCommands = async (vault: VaultPeer, text: string, files = '.'): Promise<VaultAnswer[]> => {
  const shell = spawnSync('sh', ['-euc', `${prelude}\n${text}`], { encoding: 'utf8' })
  if (shell.status !== 0) throw new Error(`the shell does not read this: ${shell.stderr}\n${text}`)
  const answers: VaultAnswer[] = []
  for (const record of shell.stdout.split('\v').slice(0, -1)) {
    const [words = '', input = ''] = record.split('\f')
    const { method, route, json } = callOf(words.split('\0').slice(0, -1), input, files)
    const answer = await vault.call(method, route, json)
    if (answer.status >= 300) throw new Error(`vault ${words}: ${answer.status} ${JSON.stringify(answer.body)}`)
    answers.push(answer)
  }
  return answers
}

type Call = { readonly method: string; readonly route: string; readonly json?: object }

const callOf = (words: readonly string[], input: string, files: string): Call => {
  const options = new Map(words.flatMap((word) => (/^-\w/.test(word) ? [optionOf(word)] : [])))
  const [verb = '', first = '', ...rest] = words.filter((word) => !/^-\w/.test(word))
  switch (verb) {
    case 'write':
      return {
        method: 'PUT',
        route: first,
        json: rest[0] === '-' ? (JSON.parse(input) as object) : valuesOf(rest, files),
      }
    case 'read':
      return { method: 'GET', route: first }
    case 'secrets':
    case 'auth':
      return {
        method: 'POST',
        route: mountRoute(verb, options.get('path') ?? rest[0]!),
        json: mountOf(rest[0]!, options),
      }
    case 'policy':
      return { method: 'PUT', route: `sys/policies/acl/${rest[0]}`, json: { policy: input } }
    case 'token':
      return { method: 'POST', route: 'auth/token/create', json: tokenOf(options) }
  }
  throw new Error(`no such command here: vault ${words.join(' ')}`)
}

const optionOf = (word: string): readonly [string, string] => {
  const [, name = '', value = ''] = /^-([\w-]+)=?(.*)$/.exec(word) ?? []
  return [name, value]
}

/** All of them are text, as on the command line of Vault. */
const valuesOf = (words: readonly string[], files: string): Record<string, string> =>
  Object.fromEntries(
    words.map((word) => {
      const at = word.indexOf('=')
      const value = word.slice(at + 1)
      return [
        word.slice(0, at),
        value.startsWith('@') ? fs.readFileSync(path.join(files, value.slice(1)), 'utf8') : value,
      ]
    }),
  )

const mountRoute = (verb: string, at: string): string => `sys/${verb === 'auth' ? 'auth' : 'mounts'}/${at}`

const mountOf = (type: string, options: ReadonlyMap<string, string>): object => {
  const longest = options.get('max-lease-ttl')
  return { type, ...(longest === undefined ? {} : { config: { max_lease_ttl: longest } }) }
}

const tokenOf = (options: ReadonlyMap<string, string>): object => ({
  policies: [options.get('policy')],
  no_parent: options.has('orphan'),
  ...(options.has('period') ? { period: options.get('period') } : {}),
  ...(options.has('ttl') ? { ttl: options.get('ttl') } : {}),
  ...(options.has('explicit-max-ttl') ? { explicit_max_ttl: options.get('explicit-max-ttl') } : {}),
})
