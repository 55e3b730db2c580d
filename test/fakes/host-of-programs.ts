// A host for programs in a folder of the test: the directory they read, agent.toml beside it, and the roots that are pinned there.

import * as fs from 'node:fs'
import * as path from 'node:path'
import type { RequestOf } from '#agent/helper/verbs.ts'
import { programUri } from '#domain/core/subject-uri.ts'
import type { Scope } from '../process/cleanup.ts'
import { tempFolder } from '../process/temp-folder.ts'
import { certificatePem, programsAuthority, type ProgramsAuthority } from './programs-authority.ts'

export const thisNode = { domain: 'example.test', id: 'gpu-001' }

export const uriOf = (output: string, { domain, id } = thisNode): string => programUri(domain, id, output)

export type ProgramHost = {
  readonly folder: string
  /** Listed for outputs. */
  readonly tls: string
  readonly agentToml: string
  readonly authority: ProgramsAuthority
  /** After what every host has: its node, its roots and its directory. */
  allow(toml: string): void
  /** A request that is allowed, with these changes. */
  request(change?: Partial<RequestOf<'output.write'>>): RequestOf<'output.write'>
}

export const filesIn = (directory: string | null): RequestOf<'output.write'>['files'] => ({
  directory,
  owner: null,
  group: null,
  key_mode: 0o640,
  combined: false,
  pkcs12: false,
  reload: null,
})

export const hostOfPrograms = (t: Scope, nowMs: number, inside = tempFolder(t)): ProgramHost => {
  // As it is called without links, which no listed directory may have.
  const folder = fs.realpathSync(inside)
  const tls = path.join(folder, 'tls')
  const agentToml = path.join(folder, 'agent.toml')
  const authority = programsAuthority(nowMs)
  fs.mkdirSync(tls, { mode: 0o755 })
  fs.chmodSync(tls, 0o755)
  fs.writeFileSync(path.join(folder, 'roots.pem'), certificatePem(authority.root), { mode: 0o644 })
  const allow = (toml: string): void => {
    const always = [
      '[node]',
      `domain = "${thisNode.domain}"`,
      `id = "${thisNode.id}"`,
      '[programs]',
      `roots = "${folder}/roots.pem"`,
      '[[outputs]]',
      `directory = "${tls}"`,
    ]
    fs.writeFileSync(agentToml, `${always.join('\n')}\n${toml}`, { mode: 0o644 })
  }
  allow('')
  return {
    folder,
    tls,
    agentToml,
    authority,
    allow,
    request: (change = {}) => ({
      name: 'web',
      files: filesIn(tls),
      ...authority.leaf({ uris: [uriOf(change.name ?? 'web')] }),
      roots: certificatePem(authority.root),
      lists: authority.listPems(7),
      authorities: '',
      ...change,
    }),
  }
}
