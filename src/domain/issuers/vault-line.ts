// Commands for an operator of Vault, to be pasted into a shell as they are.

export type VaultValue = boolean | number | string | readonly string[]

/**
 * `vault write` takes `name=value`; a list is written with commas there. What that cannot say (a comma within a value, a value that it would
 * take for a file) goes in as JSON.
 */
export const vaultWrite = (path: string, values: Readonly<Record<string, VaultValue>>): string => {
  const all = Object.entries(values)
  if (all.some(([, value]) => isAmbiguous(value))) {
    return `vault write ${quoted(path)} - <<'END'\n${JSON.stringify(values)}\nEND`
  }
  return ['vault write', quoted(path), ...all.map(([name, value]) => quoted(`${name}=${plain(value)}`))].join(' ')
}

const isAmbiguous = (value: VaultValue): boolean => {
  const texts = typeof value === 'object' ? value : [String(value)]
  return (
    texts.some((text) => text.startsWith('@') || text === '-' || text.includes('\n')) ||
    (typeof value === 'object' && value.some((text) => text.includes(',') || text.trim() !== text || text === ''))
  )
}

const plain = (value: VaultValue): string => (typeof value === 'object' ? value.join(',') : String(value))

/** What a policy has to contain. */
export const policyLine = (path: string, capability: string): string =>
  `path ${JSON.stringify(path)} { capabilities = [${JSON.stringify(capability)}] }`

const quoted = (word: string): string =>
  /^[\w./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
