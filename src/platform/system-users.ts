// Users and groups of this host by name, as its own files list them. Those of a directory service are found by number only.

import { readFileIfAny, type Owner } from './files.ts'

export type SystemUser = Owner & { readonly name: string; readonly home: string }

/** By name or number. Null: there is none of that name; a number needs none. */
export const findUser = (nameOrNumber: string): SystemUser | null => {
  const users = linesOf('/etc/passwd').flatMap(([name = '', , uid, gid, , home = '/']) =>
    uid === undefined || gid === undefined ? [] : [{ name, uid: Number(uid), gid: Number(gid), home }],
  )
  const isNumber = /^\d+$/.test(nameOrNumber)
  const found = users.find(({ name, uid }) => (isNumber ? uid === Number(nameOrNumber) : name === nameOrNumber))
  if (found !== undefined) return found
  const number = Number(nameOrNumber)
  return isNumber ? { name: nameOrNumber, uid: number, gid: number, home: '/' } : null
}

/** Null: there is none of that name. */
export const findGroup = (nameOrNumber: string): number | null => {
  if (/^\d+$/.test(nameOrNumber)) return Number(nameOrNumber)
  const [, , gid] = linesOf('/etc/group').find(([name]) => name === nameOrNumber) ?? []
  return gid === undefined ? null : Number(gid)
}

const linesOf = (file: string): string[][] =>
  (readFileIfAny(file) ?? '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(':'))
