// The folder of a domain that a plane has served, made once for a test file, and what a start has changed in one.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { after, type TestContext } from 'node:test'
import { startPlaneHere } from './plane-in-process.ts'
import { tempFolder } from './temp-folder.ts'

/** For the file that calls it: each call of what it returns is a copy of its own. */
export const copiesOfDomain = (): ((t: TestContext) => Promise<string>) => {
  const kept = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-made-domain-'))
  after(() => fs.rmSync(kept, { recursive: true, force: true }))
  let made: Promise<string> | null = null
  const make = async (): Promise<string> => {
    const data = path.join(kept, 'd')
    await (await startPlaneHere(data)).stop()
    return data
  }
  return async (t) => {
    made ??= make()
    const data = path.join(tempFolder(t), 'd')
    fs.cpSync(await made, data, { recursive: true })
    return data
  }
}

/** Every file by its name, without following links; nothing where there is no folder. */
export const contentOf = (folder: string): Record<string, string> => {
  const names = fs.existsSync(folder) ? (fs.readdirSync(folder, { recursive: true }) as string[]) : []
  const files = names.filter((name) => fs.lstatSync(path.join(folder, name)).isFile())
  return Object.fromEntries(files.map((name) => [name, fs.readFileSync(path.join(folder, name), 'base64')]))
}
