// The demo removes its folder, so what its processes said last goes into the message.

import { readFileIfAny } from '#platform/files.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'

const keptLines = 3

export const demoTrouble = (error: unknown, folder: string): Failure =>
  error instanceof Failure
    ? error
    : new Failure({
        exit: exitCodes.fault,
        code: 'DEMO_FAILED',
        sentence: 'The demo ended by itself.',
        detail: [error instanceof Error ? error.message : String(error), ...lastWords(folder)].join('; '),
        next: 'Try fewer agents: muster demo --nodes 5',
      })

const lastWords = (folder: string): string[] =>
  ['plane', 'agents'].flatMap((name) => {
    const lines = (readFileIfAny(`${folder}/${name}.log`) ?? '')
      .trim()
      .split('\n')
      .filter((line) => line !== '')
    return lines.length === 0 ? [] : [`${name} said last: ${lines.slice(-keptLines).join(' | ')}`]
  })
