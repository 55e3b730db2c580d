// `npm run walk enroll` (also `renew`, `revoke`): carries out one such operation against a real plane under precise coverage,
// and prints the production files whose functions ran, by folder, in the order in which one comes to them from the route.
//
// Files of features, of domain/ and of the authority are counted: they are what a reader has to follow. Listed apart are
// mechanics, and what no import leads to: subscribers of the feed (plane/core/feed.ts has the list of these), and parts that a
// flow knows by their type only (a revocation calls receipts). Periodic tasks of the plane are left out: a function counts only
// if it ran more often than in a quiet interval of the same length.

import { benchRun } from '../bench/bench-run.ts'
import { linesOf, operations, runOperation, walkOf } from './walked-files.ts'

const [name = ''] = process.argv.slice(2)
const operation = Object.entries(operations).find(([known]) => known === name)?.[1]
if (operation === undefined) {
  console.error(`usage: npm run walk ${Object.keys(operations).join('|')}`)
  process.exit(64)
}

await benchRun(async (t) => {
  // The first verification of the journal begins two seconds after a start.
  const ran = await runOperation(t, operation, { settleMs: 5000, quietMs: 300 })
  const { followed, elsewhere, mechanics } = walkOf(ran, operation.from)
  const show = (title: string, files: readonly string[]): void => {
    console.log(`\n${title}: ${files.length} files, ${files.reduce((sum, file) => sum + linesOf(file), 0)} lines`)
    for (const file of files) {
      const names = (ran.get(file) ?? []).filter((known) => known !== '')
      console.log(`  ${file.padEnd(56)} ${names.join(' ')}`)
    }
  }
  show('to follow', followed)
  show('over the feed, through parts, and inside the store', elsewhere)
  show('mechanics', mechanics)
})
