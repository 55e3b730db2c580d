// The trust of programs and of workers of a domain that has none, for tests of the other authorities.

import type { ProgramsTrust } from '#plane/authority/programs-authority.ts'
import type { WorkersTrust } from '#plane/authority/workers-authority.ts'
import { refuse } from '#domain/core/refusal.ts'

export const noPrograms: ProgramsTrust = {
  stored: () => [],
  warnings: () => [],
  withdrawnIssuers: () => [],
  has: () => false,
  withdraw: async () => refuse('ISSUER_NOT_FOUND'),
}

export const noWorkers: WorkersTrust = { ...noPrograms, take: async () => 'lost-race' }
