import { readFileIfAny } from './files.ts'

/** What systemd calls this installation; null where there is none, or none that tells machines apart. */
export const readMachineId = (file = '/etc/machine-id'): string | null => {
  try {
    const id = (readFileIfAny(file) ?? '').trim()
    return /^[0-9a-f]{32}$/.test(id) && !/^0+$/.test(id) ? id : null
  } catch {
    return null
  }
}
