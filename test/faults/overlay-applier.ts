// A process to be killed: puts the files of an overlay in force, and kills itself at the n-th time it reaches a step.
// `node overlay-applier.ts STATE STEP COUNT`, the files as JSON on standard input.

import * as fs from 'node:fs'
import { openOverlayFiles, type OverlayStep } from '#agent/fleet/apply-files.ts'
import { plainDigest } from '#agent/fleet/secret-digest.ts'
import type { OverlayFile } from '#domain/fleet/overlay.ts'

const [state = '', step = '', count = ''] = process.argv.slice(2)
let left = Number(count)
/** SIGKILL from oneself is delivered before the call returns: nothing after the step happens. */
const reached = (here: OverlayStep): void => {
  if (here === step && --left === 0) process.kill(process.pid, 'SIGKILL')
}
const files = JSON.parse(fs.readFileSync(0, 'utf8')) as OverlayFile[]
process.stdout.write(JSON.stringify(openOverlayFiles(state, plainDigest, reached).apply(files)))
