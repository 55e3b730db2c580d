// What of an overlay is signed for the helper of a host: the definition of each service and each check, as a text that the plane and
// the helper digest alike. All functions here are pure.

import { closed, orNull } from '#wire/core/shapes.ts'
import { Type, type Static } from 'typebox'
import { ConfigService, type ConfigCheck } from './overlay.ts'

const { name, command, terms } = ConfigService.properties

/** A service as the plane has defined it: with `{overlay}` where the folder of its files is meant. */
export const ServiceDefinition = Type.Object(
  { name, command, terms: orNull(Type.Object({ ...terms.properties }, closed)) },
  closed,
)
export type ServiceDefinition = Static<typeof ServiceDefinition>

export const CheckDefinition = Type.Object({ name, command }, closed)
export type CheckDefinition = Static<typeof CheckDefinition>

export const definitionOfService = ({
  name,
  command,
  terms,
}: {
  readonly name: string
  readonly command: readonly string[]
  readonly terms?: ConfigService['terms']
}): ServiceDefinition => ({
  name,
  command: [...command],
  terms:
    terms === undefined
      ? null
      : {
          user: terms.user,
          environment: terms.environment,
          working_directory: terms.working_directory,
          restart: terms.restart,
          memory_bytes: terms.memory_bytes,
          cpus: terms.cpus,
          open_files: terms.open_files,
        },
})

export const definitionOfCheck = ({ name, command }: Pick<ConfigCheck, 'name' | 'command'>): CheckDefinition => ({
  name,
  command,
})

/**
 * The order of what is in it is fixed. A term of a later release joins the text only where a service has it: hosts of this release
 * would refuse every other service as well.
 */
export const textOfService = ({ name, command, terms }: ServiceDefinition): string =>
  JSON.stringify(['service', name, command, terms === null ? null : textOfTerms(terms)])

export const textOfCheck = ({ name, command }: CheckDefinition): string => JSON.stringify(['check', name, command])

const textOfTerms = (terms: NonNullable<ServiceDefinition['terms']>): readonly unknown[] => [
  terms.user,
  Object.entries(terms.environment).sort(([a], [b]) => (a < b ? -1 : 1)),
  terms.working_directory,
  terms.restart,
  terms.memory_bytes,
  terms.cpus,
  terms.open_files,
]

const place = '{overlay}'

/** Whether it names the folder of the files. */
export const namesPlace = (text: string): boolean => text.includes(place)

/** With the folder of the files in its place. */
export const inPlace = (text: string, folder: string): string => text.replaceAll(place, folder)

/** Under this name agent.toml lists the program that reads the kernel's log. */
const kernelErrors = 'muster:kernel-errors'

/** Whether the helper makes a check where there is one. The others an agent makes itself. */
export const isHelpersCheck = ([program = '']: readonly string[]): boolean =>
  program === kernelErrors || !program.startsWith('muster:')

/** What agent.toml calls it. */
export const listedNameOfCheck = ({ name, command }: CheckDefinition): string =>
  command[0] === kernelErrors ? 'kernel-errors' : name
