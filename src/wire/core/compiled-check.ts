// A check of values that is compiled when the first of them comes: to compile all of them is a tenth of a plane's start, and most
// processes need few.

import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/schema'

export type CompiledCheck<T extends TSchema> = { Check(value: unknown): value is Static<T> }

export const compiledCheck = <const T extends TSchema>(schema: T): CompiledCheck<T> => {
  let compiled: ReturnType<typeof Compile<T>> | null = null
  return {
    Check: (value): value is Static<T> => {
      compiled ??= Compile(schema)
      return compiled.Check(value)
    },
  }
}
