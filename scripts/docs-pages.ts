// Writes docs/SETTINGS.md and docs/CLI.md. `npm test` complains when they are not up to date.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { pathToFileURL } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { cliPage } from './cli-page.ts'
import { root } from './repository.ts'
import { settingsPage } from './settings-page.ts'

/** The pages with their texts, formatted as the repository is. */
export const docsPages = async (): Promise<readonly { readonly file: string; readonly text: string }[]> => {
  const made = { 'docs/SETTINGS.md': settingsPage(), 'docs/CLI.md': await cliPage() }
  const pages = Object.entries(made).map(async ([name, text]) => {
    const file = path.join(root, name)
    return { file, text: await format(text, { ...(await resolveConfig(file)), parser: 'markdown' }) }
  })
  return Promise.all(pages)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const { file, text } of await docsPages()) fs.writeFileSync(file, text)
}
