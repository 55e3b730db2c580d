// Values of a node in the files and services of an overlay. They come from the registry, never from what a node reports. The
// plane fills them in, so that agents need not know of them.

import type { Overlay } from './overlay.ts'

export type NodeValues = {
  readonly id: string
  readonly domain: string
  readonly vcluster: string
  readonly tags: readonly string[]
}

const shape = /\{(id|domain|vcluster|tags)\}/g

/** Other words in braces stay as they are: a template may be a program. */
const fill = (text: string, values: NodeValues): string =>
  text.replace(shape, (_whole, name: keyof NodeValues) => {
    const value = values[name]
    return typeof value === 'string' ? value : value.filter((tag) => tagShape.test(tag)).join(',')
  })

/** As operators give them. The row of a node has no MAC: what else is written there does not become a word of a command. */
const tagShape = /^[a-z0-9]([a-z0-9._:-]{0,61}[a-z0-9])?$/

export const fillTemplates = (overlay: Overlay, values: NodeValues): Overlay => {
  const filledIn = new Set(overlay.terms.filter(({ template }) => template).map(({ service }) => service))
  return {
    ...overlay,
    files: overlay.files.map((file) =>
      overlay.templates.includes(file.path) ? { ...file, content: fill(file.content, values) } : file,
    ),
    services: overlay.services.map((service) =>
      filledIn.has(service.name) ? { ...service, command: service.command.map((word) => fill(word, values)) } : service,
    ),
    terms: overlay.terms.map((terms) =>
      terms.template
        ? {
            ...terms,
            environment: Object.fromEntries(
              Object.entries(terms.environment).map(([name, value]) => [name, fill(value, values)]),
            ),
          }
        : terms,
    ),
  }
}

/** The longest that names in the registry can be, so that what fits when it is set fits every node. */
const longest: NodeValues = {
  id: 'n'.repeat(63),
  domain: 'd'.repeat(253),
  vcluster: 'v'.repeat(63),
  tags: Array.from({ length: 64 }, () => 't'.repeat(63)),
}

export const longestFilled = (overlay: Overlay): Overlay => fillTemplates(overlay, longest)
