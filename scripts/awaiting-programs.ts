// A script cannot await where a module can. What a program does behind its imports becomes a promise that it exports as `ended`.

import * as fs from 'node:fs'
import type { Plugin } from 'esbuild'

/** `programs`: full paths of their sources. */
export const awaitingPrograms = (programs: readonly string[]): Plugin => ({
  name: 'awaiting-programs',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
      if (!programs.includes(file)) return null
      const text = fs.readFileSync(file, 'utf8')
      const imports = /^import [^]*?'[^']+'$/gm
      const rest = text.replace(imports, '')
      const contents = `${(text.match(imports) ?? []).join('\n')}\nexport const ended = (async () => {${rest}})()\n`
      return { contents, loader: 'ts' }
    })
  },
})
