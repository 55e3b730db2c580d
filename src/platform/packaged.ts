// Files of packaging/ that commands read: the executable carries them, a checkout has them in their folder.

import * as fs from 'node:fs'
import * as path from 'node:path'
import { getAsset, isSea } from 'node:sea'

/** `name`: below packaging/, such as `systemd/muster-agent.service`. Throws where this installation does not have it. */
export const packagedText = (name: string): string =>
  isSea()
    ? getAsset(`packaging/${name}`, 'utf8')
    : fs.readFileSync(path.join(import.meta.dirname, '../../packaging', name), 'utf8')

/** Of Muster and of everything in the executable; null: this is no executable, and they lie beside the code. */
export const packagedLicenses = (): string | null => (isSea() ? getAsset('licenses', 'utf8') : null)
