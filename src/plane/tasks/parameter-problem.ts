// Whether the parameters of a task fit its type, before it is queued.

import { Check, Errors } from 'typebox/value'
import { isShippedType, type ShippedTaskType } from '#domain/core/task-types.ts'
import { longestParameters } from '#wire/core/task-statements.ts'
import { taskParameters } from '#wire/tasks/task-parameters.ts'

export type ParameterProblem = { readonly path: string; readonly why: string }

/** A type that ships without a schema does not compile. */
const schemas: Readonly<Record<ShippedTaskType, (typeof taskParameters)[ShippedTaskType]>> = taskParameters

/** Null: they fit. Of a type of the host's own only the host knows what it takes. */
export const parameterProblem = (
  type: string,
  parameters: Readonly<Record<string, unknown>>,
): ParameterProblem | null => {
  if (Buffer.byteLength(JSON.stringify(parameters)) > longestParameters)
    return { path: 'parameters', why: `as JSON they have at most ${longestParameters} bytes` }
  if (!isShippedType(type) || Check(schemas[type], parameters)) return null
  const [first] = Errors(schemas[type], parameters)
  const inside = (first?.instancePath ?? '').replaceAll('/', '.')
  const takes = Object.keys(schemas[type].properties).join(', ') || 'no parameters'
  return { path: `parameters${inside}`, why: `${first?.message ?? 'they do not fit'}; ${type} takes ${takes}` }
}
