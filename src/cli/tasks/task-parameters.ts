// The parameters of a task, from the command line or a file.

import { readText } from '#cli/kit/arguments.ts'
import type { Cli } from '#cli/kit/cli.ts'
import { contentsOf, sourceOf } from '#cli/kit/document-source.ts'
import { usageFailure } from '#cli/kit/failure.ts'

export type ParameterOptions = { readonly param: readonly string[]; readonly params?: string }

const longestFile = 64 * 1024

export const taskParametersOf = async (
  cli: Cli,
  { param, params }: ParameterOptions,
): Promise<Record<string, unknown>> => {
  const ofFile =
    params === undefined ? {} : contentsOf(sourceOf(params, await readText(cli, params, longestFile), help))
  return param.reduce<Record<string, unknown>>((found, pair) => {
    const [name, value] = parameterOf(pair)
    if (Object.hasOwn(found, name)) throw usageFailure(`The parameter ${name} is given twice.`)
    return { ...found, [name]: value }
  }, ofFile)
}

const help = 'Write names and values: name: firmware-check'

const shape = /^([A-Za-z0-9_-]{1,64})(:?=)(.*)$/s

const parameterOf = (pair: string): readonly [name: string, value: unknown] => {
  const [, name, sign, text] = shape.exec(pair) ?? []
  if (name === undefined || text === undefined)
    throw usageFailure(`${pair} is not a parameter.`, 'Write NAME=TEXT, or NAME:=JSON')
  if (sign === '=') return [name, text]
  try {
    return [name, JSON.parse(text)]
  } catch {
    throw usageFailure(`${name} is not JSON.`, `Quote it for the shell: '${name}:=["one","two"]'`)
  }
}
