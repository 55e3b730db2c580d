// Loaded into a plane before all else (`node --import`): its monotonic clock is ahead of the machine's by what a file says.
// quiet-time.ts writes that file, and reads in another how far this process has come.

import * as fs from 'node:fs'

const file = process.env['TEST_QUIET_FILE'] ?? ''
const machineMs = performance.now.bind(performance)
/** More than the second after which a plane looks at its channels: that has run by then, in this same event loop. */
const settledMs = 1200
let aheadMs = 0
performance.now = () => machineMs() + aheadMs

const look = (): void => {
  const wantedMs = Number(fs.readFileSync(file, 'utf8'))
  if (wantedMs === aheadMs) return
  aheadMs = wantedMs
  setTimeout(() => fs.writeFileSync(`${file}.reached`, String(wantedMs)), settledMs).unref()
}
look()
setInterval(look, 20).unref()
