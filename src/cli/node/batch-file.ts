// The file of `node enroll --batch`: CSV with a header. Every line is independent: a bad one is reported and the others
// go on. A column that Muster does not know becomes a tag: `rack` with `R12` is `rack:r12`.

import { parse } from 'csv-parse/sync'
import { provisioningStates, type Provisioning } from '#domain/core/node.ts'
import { matchesSchema } from '#platform/json-schema.ts'
import { RegisterRequest } from '#wire/node/node-api.ts'
import { tagFrom, tagRule } from '#cli/kit/arguments.ts'
import { usageFailure } from '#cli/kit/failure.ts'

export type BatchLine =
  | {
      readonly kind: 'request'
      readonly line: number
      readonly request: RegisterRequest
      readonly tags: readonly string[]
      /** For its programs: DNS names and addresses. */
      readonly names: readonly string[]
      /** Null: nothing is said of it. */
      readonly provisioning: Provisioning['state'] | null
    }
  | {
      readonly kind: 'unusable'
      readonly line: number
      readonly id: string
      /** `REQUEST_INVALID`: the plane would refuse it, with this code. `USAGE`: it cannot be made a request. */
      readonly code: 'REQUEST_INVALID' | 'USAGE'
      readonly why: string
    }

const columns = ['id', 'profile', 'mac', 'bmc_serial', 'names', 'provisioning', 'tags'] as const

export const parseBatch = (text: string, defaultProfile: string | undefined): BatchLine[] => {
  const [header, ...records] = readCsv(text)
  if (header === undefined) throw usageFailure('The file is empty.', `Give it a header: ${columns.join(',')}`)
  const names = header.record.map((name) => name.trim().toLowerCase())
  const wrong = headerProblem(names)
  if (wrong !== null) {
    throw usageFailure(wrong, `These have a meaning: ${columns.join(',')}; every other column becomes a tag`)
  }
  const tagColumns = names.filter((name) => !isKnown(name))
  const seen = new Set<string>()
  return records.map(({ record, info }) => {
    const line = info.lines
    const cell = (name: string): string => record[names.indexOf(name)]?.trim() ?? ''
    const id = cell('id')
    if (record.length !== names.length) return unusable(line, id, `has ${record.length} cells, not ${names.length}`)
    if (id === '') return unusable(line, id, 'has no id')
    if (seen.has(id)) return unusable(line, id, 'names a node that an earlier line names too')
    seen.add(id)
    const said = cell('provisioning')
    const provisioning = provisioningStates.find((state) => state === said) ?? null
    if (provisioning === null && said !== '')
      return unusable(line, id, `is ${said}; a machine is ${provisioningStates.join(', ')}`)
    const written = [
      ...severalIn(cell('tags')),
      ...tagColumns.flatMap((name) => (cell(name) === '' ? [] : [`${name}:${cell(name)}`])),
    ]
    const noTag = written.find((one) => tagFrom(one) === null)
    if (noTag !== undefined) return unusable(line, id, `has ${noTag}, which is no tag: ${tagRule}`)
    const tags = written.flatMap((one) => tagFrom(one) ?? [])
    if (tags.length > mostTags)
      return unusable(line, id, `has ${tags.length} tags; a node has at most ${mostTags}`, 'REQUEST_INVALID')
    const macs = severalIn(cell('mac'))
    const profile = cell('profile') || defaultProfile
    const request = {
      id,
      ...(profile === undefined ? {} : { profile }),
      ...(macs.length === 0 ? {} : { macs }),
      ...(cell('bmc_serial') === '' ? {} : { bmc_serial: cell('bmc_serial') }),
    }
    const misfit = misfitIn(request)
    if (misfit !== null) return unusable(line, id, misfit, 'REQUEST_INVALID')
    return {
      kind: 'request',
      line,
      request,
      tags: [...new Set(tags)],
      names: severalIn(cell('names')),
      provisioning,
    }
  })
}

/** What the plane would refuse by its schema: with the whole call, and the other lines in it. */
const misfitIn = (request: RegisterRequest): string | null => {
  const fields = Object.keys(takes) as (keyof RegisterRequest)[]
  const wrong = fields.find(
    (name) => request[name] !== undefined && !matchesSchema(RegisterRequest.properties[name], request[name]),
  )
  return wrong === undefined ? null : `has a ${takes[wrong]}`
}

const takes: Readonly<Record<keyof RegisterRequest, string>> = {
  id: 'name that no node can have: lower-case letters, digits, dots, dashes and underscores, at most 63',
  profile: 'profile with a longer name than profiles have: at most 64 letters',
  macs: 'cell mac that holds no MAC addresses: 02:4d:55:00:01:01, several with spaces, at most 64',
  bmc_serial: 'serial number that is too long: at most 128 letters',
}

const isKnown = (name: string): boolean => columns.includes(name as (typeof columns)[number])
/** Of a call; the plane has the same bound for a node. */
const mostTags = 64

/** A known column that was written differently would become a tag, and its values would be missing where they belong. */
const headerProblem = (names: readonly string[]): string | null => {
  if (!names.includes('id')) return 'The first line does not name a column id.'
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) return `The first line names ${twice === '' ? 'an empty column' : twice} twice.`
  for (const name of names.filter((one) => !isKnown(one))) {
    if (!/^[a-z0-9][a-z0-9._-]{0,30}$/.test(name)) return `The first line has "${name}", which cannot become a tag.`
    const meant = columns.find((known) => bare(known) === bare(name))
    if (meant !== undefined) return `The first line has ${name}: did you mean ${meant}?`
  }
  return null
}

const bare = (name: string): string => name.replace(/[^a-z0-9]/g, '').replace(/s$/, '')

const severalIn = (cell: string): string[] => cell.split(/[;\s]+/).filter((one) => one !== '')

type Parsed = { readonly record: readonly string[]; readonly info: { readonly lines: number } }

const readCsv = (text: string): Parsed[] => {
  try {
    return parse(text, {
      bom: true,
      info: true,
      comment: '#',
      comment_no_infix: true,
      skip_empty_lines: true,
      relax_column_count: true,
      max_record_size: 16_384,
    }) as unknown as Parsed[]
  } catch (error) {
    throw usageFailure(`The file is not CSV: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const unusable = (line: number, id: string, why: string, code: 'REQUEST_INVALID' | 'USAGE' = 'USAGE'): BatchLine => ({
  kind: 'unusable',
  line,
  id,
  code,
  why,
})
