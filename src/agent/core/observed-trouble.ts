import { classify, type Observed } from '#domain/recovery/failure-class.ts'
import { classified, trouble, type Trouble } from './trouble.ts'

/** Trouble with its class, the evidence for it and the next step, all from what was seen. */
export const observedTrouble = (
  code: string,
  text: string,
  ...observed: readonly [Observed, ...Observed[]]
): Trouble => {
  const verdict = classify(...observed)
  return classified(trouble(code, text, verdict.next), verdict.class, verdict.evidence)
}
