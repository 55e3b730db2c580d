// Commands that an error of a plane names find what that plane was started on: its data folder, its store, its sealing key.

import * as path from 'node:path'
import type { PlaneConfig } from '#plane/config/config.ts'
import { defaultDataFolder } from '#cli/kit/connection.ts'
import { shellWord } from '#cli/kit/shell-word.ts'

type RanWith = Pick<PlaneConfig, 'dataFolder' | 'store' | 'sealKeyFile' | 'issuerKey'>

/** Those that look for the store as a plane does. */
const named = /muster (ca replace-lost(?: (?:issuing|recovery|statement|bearer|journal))+|store status)\b/g

export const asPlaneRan = (text: string, config: RanWith): string =>
  text.replace(named, (command: string, what: string) => {
    const isReplacing = what.startsWith('ca ')
    const more = [...optionsOf(config, isReplacing), ...(isReplacing ? ['--reason REASON'] : [])]
    return [command, ...more].join(' ')
  })

const optionsOf = ({ dataFolder, store, sealKeyFile, issuerKey }: RanWith, opensKeys: boolean): readonly string[] => [
  ...(dataFolder === path.resolve(defaultDataFolder) ? [] : [`--data ${shellWord(dataFolder)}`]),
  ...(store.kind === 'sqlite' ? [] : ['--store postgres']),
  ...(opensKeys && sealKeyFile !== null ? [`--seal-key ${shellWord(path.resolve(sealKeyFile))}`] : []),
  ...(opensKeys && issuerKey === 'memory' ? ['--issuer-key memory'] : []),
]
