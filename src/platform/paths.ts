// Folders that come and go whole.

import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'

export const pathExists = (place: string): boolean => fs.existsSync(place)

/** A new folder of this user alone (0700). */
export const makeTemporaryFolder = (prefix: string): string => fs.mkdtempSync(path.join(os.tmpdir(), prefix))

export const removeFolder = (folder: string): void => fs.rmSync(folder, { recursive: true, force: true })
