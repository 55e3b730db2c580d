// Configurations and commands as the documents show them: a test that runs a program with the text that a reader copies.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { repository } from '../process/child.ts'

/** What is written there, and what stands in its place here. */
type Here = Readonly<Record<string, string>>

/** The first block of that language on a page of docs/. */
export const documentedBlock = (page: string, language: string, here: Here = {}): string =>
  changed(page, here, blocksOf(page, language)[0] ?? missing(page, language))

/** The block of a shell that has this text in it. */
export const documentedCommands = (page: string, text: string, here: Here = {}): string =>
  changed(page, here, blocksOf(page, 'sh').find((block) => block.includes(text)) ?? missing(page, text))

/** The words behind the program in the block of a shell that begins with it; of quotes only plain double ones. */
export const documentedArguments = (page: string, program: string, here: Here = {}): string[] => {
  const block = blocksOf(page, 'sh').find((text) => text.startsWith(`${program} `)) ?? missing(page, program)
  const line = changed(page, here, block).replaceAll('\\\n', ' ')
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '').slice(1)
}

const blocksOf = (page: string, language: string): string[] => {
  const text = fs.readFileSync(path.join(repository, 'docs', page), 'utf8')
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block)
}

const missing = (page: string, what: string): never => {
  throw new Error(`docs/${page} has no block of ${what}`)
}

const changed = (page: string, here: Here, block: string): string =>
  Object.entries(here).reduce((text, [written, meant]) => {
    if (!text.includes(written)) throw new Error(`docs/${page}: ${written} is not in this block:\n${block}`)
    return text.replaceAll(written, meant)
  }, block)
