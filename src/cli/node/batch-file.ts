// The file of `node enroll --batch`: CSV with a header. Every line is independent: a bad one is reported and the others
// go on.

import { parse } from 'csv-parse/sync'
import { provisioningStates, type Provisioning } from '#domain/core/node.ts'
import type { RegisterRequest } from '#wire/node/node-api.ts'
import { usageFailure } from '#cli/kit/failure.ts'

export type BatchLine =
  | {
      readonly kind: 'request'
      readonly line: number
      readonly request: RegisterRequest
      /** For its programs: DNS names and addresses. */
      readonly names: readonly string[]
      /** Null: nothing is said of it. */
      readonly provisioning: Provisioning['state'] | null
    }
  | { readonly kind: 'unusable'; readonly line: number; readonly id: string; readonly why: string }

const columns = ['id', 'profile', 'mac', 'bmc_serial', 'names', 'provisioning'] as const

export const parseBatch = (text: string, defaultProfile: string | undefined): BatchLine[] => {
  const [header, ...records] = readCsv(text)
  if (header === undefined) throw usageFailure('The file is empty.', `Give it a header: ${columns.join(',')}`)
  const names = header.record.map((name) => name.trim().toLowerCase())
  const unknown = names.filter((name) => !columns.includes(name as (typeof columns)[number]))
  if (!names.includes('id') || unknown.length > 0 || new Set(names).size !== names.length) {
    const wrong = unknown.length > 0 ? `: ${unknown.join(', ')}` : ''
    throw usageFailure(`The first line does not name the columns${wrong}.`, `It has to be: ${columns.join(',')}`)
  }
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
    const macs = severalIn(cell('mac'))
    const profile = cell('profile') || defaultProfile
    return {
      kind: 'request',
      line,
      request: {
        id,
        ...(profile === undefined ? {} : { profile }),
        ...(macs.length === 0 ? {} : { macs }),
        ...(cell('bmc_serial') === '' ? {} : { bmc_serial: cell('bmc_serial') }),
      },
      names: severalIn(cell('names')),
      provisioning,
    }
  })
}

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

const unusable = (line: number, id: string, why: string): BatchLine => ({ kind: 'unusable', line, id, why })
