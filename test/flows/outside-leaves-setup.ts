// Programs and workers whose certificates an outside issuer signs, on a plane that can be opened once more, as after a crash.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { makeCsr } from '#pki/csr.ts'
import { generateKey } from '#pki/keys.ts'
import { verifyAs } from '#pki/signature.ts'
import { isRefusal, type Refusal } from '#domain/core/refusal.ts'
import type { WorkerPrincipal } from '#domain/core/principal.ts'
import { openProgramsAuthority } from '#plane/authority/programs-authority.ts'
import { openWorkersAuthority } from '#plane/authority/workers-authority.ts'
import { openWriteLimit } from '#plane/limits/write-limit.ts'
import { withOutsideLeaves } from '#plane/issuers/outside-book.ts'
import { issueProgram, type ProgramIssueParts } from '#plane/programs/issue-program.ts'
import { changeProfile } from '#plane/settings/policy-routes.ts'
import { enrollWorker, renewWorker, type EnrollWorkerParts } from '#plane/workers/enroll-worker.ts'
import { openKeySets } from '#plane/workers/key-sets.ts'
import { addWorkerIssuer, openWorkerIssuers } from '#plane/workers/worker-issuers.ts'
import type { ProgramResponse } from '#wire/programs/programs-api.ts'
import type { WorkerCertificate } from '#wire/workers/worker-api.ts'
import { cluster } from '../fakes/service-accounts.ts'
import { operator } from './authority-setup.ts'
import { setUpOutside, type OutsidePlane } from './outside-setup.ts'
import { source } from './recovery-setup.ts'

export const day = 86_400_000

/** With an output and workers that `corp` signs for. Nodes are signed here. */
export const openLeaves = async (plane: OutsidePlane) => {
  const { core, issuance, book } = plane
  const { orders } = issuance
  const opening = { custody: await plane.custody(), domain: 'test.example' }
  const programs = await openProgramsAuthority(core, opening)
  const workers = await openWorkersAuthority(core, opening)
  const writeLimit = openWriteLimit(core.clock, () => 1)
  const parts: ProgramIssueParts = {
    programs: withOutsideLeaves(programs, book),
    outsideRoots: () => issuance.programRoots.current(),
    ...{ orders, verifyProof: verifyAs, writeLimit },
  }
  const ofWorkers: EnrollWorkerParts = {
    workers: withOutsideLeaves(workers, book),
    roots: () => issuance.issuer.roots(),
    issuers: await openWorkerIssuers(core),
    keySets: openKeySets(core),
    anonymousBudget: plane.deps.anonymousBudget,
    admission: plane.deps.admission,
    ...{ orders, verifyProof: verifyAs, writeLimit },
  }
  const limit = { longestLeafMs: () => 3650 * day }
  return {
    ...{ programs, workers, parts },
    /** What operators list for the nodes of the profile. */
    list: async (...outputs: object[]) => {
      const done = await changeProfile(core, limit, 'gpu-cloud', { outputs }, operator)
      await programs.maintain()
      return done
    },
    ask: async (node: string, output: string, csr = newLeafCsr(), takesOutside = true) =>
      issueProgram(core, parts, await plane.principal(node), { output, csr, takesOutside, correlation: 'leaf' }),
    addWorkers: async (signedBy: string) => {
      const { iss, aud, sub, jwks } = east
      const keys = { kind: 'file', document: jwks() } as const
      const done = await addWorkerIssuer(
        core,
        'east',
        { iss, aud, sub, keys, types: [], vclusters: [], signedBy },
        operator,
      )
      await workers.maintain()
      return done
    },
    enrollWorker: (token: string, csr: string) =>
      enrollWorker(core, ofWorkers, { token, csr, source, correlation: 'w' }),
    renewWorker: (principal: WorkerPrincipal, token: string, csr: string) =>
      renewWorker(core, ofWorkers, principal, { token, csr, source, correlation: 'w' }),
  }
}

export const east = cluster()

export const setUpLeaves = async (t: TestContext, options: { readonly takesSerial?: boolean } = {}) => {
  const setup = await setUpOutside(t, options)
  // What `setUpOutside` has the issuer sign are the nodes: they are none of this.
  await setup.plane.signedBy('built-in')
  return { ...setup, leaves: await openLeaves(setup.plane) }
}

export const newLeafCsr = (): string => makeCsr(generateKey('p256'), 'gpu-1/web')

export const given = <T extends object>(answer: T | Refusal): T => {
  assert.ok(!isRefusal(answer), JSON.stringify(answer))
  return answer
}

export const codeOfAnswer = (answer: ProgramResponse | WorkerCertificate | Refusal): string =>
  isRefusal(answer) ? answer.code : 'given'
