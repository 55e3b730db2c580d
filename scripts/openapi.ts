// Writes docs/openapi.json and the generated part of docs/API.md. `npm test` complains when they are not up to date.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { pathToFileURL } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { openApiDocument } from '#plane/http/openapi.ts'
import { everyListener } from '#wire/listeners.ts'
import { musterVersion } from '#platform/this-process.ts'
import { apiTables, withTables } from './api-tables.ts'
import { root } from './repository.ts'

export const openApiFile = path.join(root, 'docs', 'openapi.json')
export const apiPage = path.join(root, 'docs', 'API.md')

export const openApiText = (): string => `${JSON.stringify(openApiDocument(musterVersion, everyListener), null, 2)}\n`

/** Formatted as the repository is, so that nothing else has to touch it. */
export const apiPageText = async (page: string): Promise<string> =>
  format(withTables(page, apiTables(everyListener)), { ...(await resolveConfig(apiPage)), parser: 'markdown' })

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  fs.writeFileSync(openApiFile, openApiText())
  fs.writeFileSync(apiPage, await apiPageText(fs.readFileSync(apiPage, 'utf8')))
}
