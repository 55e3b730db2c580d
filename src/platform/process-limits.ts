import { readFileIfAny } from './files.ts'

/** How many files this process may have open; 1024 where the system does not say. */
export const openFileLimit = (): number => {
  const line = readFileIfAny('/proc/self/limits')?.match(/^Max open files\s+(\d+|unlimited)/m)
  if (line?.[1] === 'unlimited') return 1_048_576
  return line?.[1] === undefined ? 1024 : Number(line[1])
}
