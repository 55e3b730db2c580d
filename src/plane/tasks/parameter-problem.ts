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
  // Before anything goes through them that calls itself for each level, here and on the host.
  if (isDeeper(parameters, mostLevels))
    return { path: 'parameters', why: `objects and lists in them are at most ${mostLevels} deep` }
  if (Buffer.byteLength(JSON.stringify(parameters)) > longestParameters)
    return { path: 'parameters', why: `as JSON they have at most ${longestParameters} bytes` }
  if (!isShippedType(type) || Check(schemas[type], parameters)) return null
  const [first] = Errors(schemas[type], parameters)
  const inside = (first?.instancePath ?? '').replaceAll('/', '.')
  const takes = Object.keys(schemas[type].properties).join(', ') || 'no parameters'
  const path = `parameters${inside}`
  return { path, why: `${path} ${first === undefined ? 'do not fit' : messageOf(first)}; ${type} takes ${takes}` }
}

/** The words of the validator name no values of an enumeration. */
const messageOf = (error: ReturnType<typeof Errors>[number]): string =>
  error.keyword === 'enum' ? `must be one of ${error.params.allowedValues.join(', ')}` : error.message

/** Themselves included. */
const mostLevels = 32

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inside) => isDeeper(inside, levels - 1)))
