// Attackers in a process of their own, so that their work is not measured as the plane's or the caller's. Reads the doors
// as one line of JSON, attacks until its input ends.

import * as readline from 'node:readline'
import { attack, attackKinds, type Door } from './attackers.ts'

const lines = readline.createInterface({ input: process.stdin })
lines.once('line', (line) => {
  const { doors, each } = JSON.parse(line) as { doors: readonly Door[]; each: number }
  for (const [at, door] of doors.entries())
    for (const [number, kind] of attackKinds.entries()) attack(kind, door, `127.0.${at + 1}.${number + 1}`, each)
  console.log('attacking')
})
lines.once('close', () => process.exit(0))
