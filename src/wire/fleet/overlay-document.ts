// An overlay as operators write it and as it is shown to them: what belongs to a file or a service stands with it. The domain
// keeps the parts that 0.3 does not know apart (domain/fleet/overlay.ts).

import { Type, type Static } from 'typebox'
import { termsOf, usualTerms, type Overlay, type ServiceTerms } from '#domain/fleet/overlay.ts'
import { closed } from '#wire/core/shapes.ts'
import {
  CheckBody,
  Environment,
  Limits,
  mostChecks,
  mostServices,
  OverlayFileBody,
  Restart,
  ServiceBody,
  UserName,
  WorkingDirectory,
} from './overlay.ts'

/** Nothing in it is overlooked. */
const FileDocument = Type.Object(
  {
    ...OverlayFileBody.properties,
    /** A number, or octal as text; left out: 0644. */
    mode: Type.Optional(Type.Union([OverlayFileBody.properties.mode, Type.String({ pattern: '^0?[4-7][0-7]{2}$' })])),
    /** {id}, {domain}, {vcluster} and {tags} are filled in. */
    template: Type.Optional(Type.Boolean()),
  },
  closed,
)

const ServiceDocument = Type.Object(
  {
    ...ServiceBody.properties,
    user: Type.Optional(UserName),
    environment: Type.Optional(Environment),
    workingDirectory: Type.Optional(WorkingDirectory),
    restart: Type.Optional(Restart),
    limits: Type.Optional(
      Type.Object(
        {
          memoryBytes: Type.Optional(Limits.memoryBytes),
          cpus: Type.Optional(Limits.cpus),
          openFiles: Type.Optional(Limits.openFiles),
        },
        closed,
      ),
    ),
    template: Type.Optional(Type.Boolean()),
  },
  closed,
)

const CheckDocument = Type.Object(
  {
    ...CheckBody.properties,
    intervalMs: Type.Optional(CheckBody.properties.intervalMs),
    timeoutMs: Type.Optional(CheckBody.properties.timeoutMs),
  },
  closed,
)

export const OverlayRequest = Type.Object(
  {
    files: Type.Optional(Type.Array(FileDocument, { maxItems: 128 })),
    services: Type.Optional(Type.Array(ServiceDocument, { maxItems: mostServices })),
    checks: Type.Optional(Type.Array(CheckDocument, { maxItems: mostChecks })),
  },
  closed,
)
export type OverlayRequest = Static<typeof OverlayRequest>

/** In an answer: modes are numbers, and what is as usual is left out. */
export const OverlayBody = Type.Object({
  files: Type.Array(
    Type.Object({ ...OverlayFileBody.properties, template: FileDocument.properties.template }, closed),
    { maxItems: 128 },
  ),
  services: Type.Array(ServiceDocument, { maxItems: mostServices }),
  /** Left out by planes of 0.3. */
  checks: Type.Optional(Type.Array(Type.Object(CheckBody.properties, closed), { maxItems: mostChecks })),
})

const usualMode = 0o644
const usualIntervalMs = 60_000
const usualTimeoutMs = 10_000

/** Members in one order, independent of the document's. */
export const overlayOf = ({ files = [], services = [], checks = [] }: OverlayRequest): Overlay => ({
  files: files.map(({ path, mode = usualMode, content }) => ({ path, mode: modeOf(mode), content })),
  services: services.map(({ name, command }) => ({ name, command })),
  terms: services.map(termsIn).filter((terms) => !isUsual(terms)),
  templates: files.filter(({ template }) => template === true).map(({ path }) => path),
  checks: checks.map(({ name, command, intervalMs = usualIntervalMs, timeoutMs }) => ({
    ...{ name, command, intervalMs },
    timeoutMs: timeoutMs ?? Math.min(usualTimeoutMs, intervalMs),
  })),
})

const modeOf = (mode: number | string): number => (typeof mode === 'number' ? mode : Number.parseInt(mode, 8))

const termsIn = (service: NonNullable<OverlayRequest['services']>[number]): ServiceTerms => {
  const { name, user = null, environment = {}, workingDirectory = null, restart = 'always', limits = {} } = service
  const { memoryBytes = null, cpus = null, openFiles = null } = limits
  return {
    ...{ service: name, user, environment: { ...environment }, workingDirectory, restart },
    limits: { memoryBytes, cpus, openFiles },
    template: service.template ?? false,
  }
}

const isUsual = (terms: ServiceTerms): boolean => JSON.stringify(terms) === JSON.stringify(usualTerms(terms.service))

export const overlayView = (overlay: Overlay): Static<typeof OverlayBody> => ({
  files: overlay.files.map((file) => ({
    ...file,
    ...(overlay.templates.includes(file.path) && { template: true }),
  })),
  services: overlay.services.map(({ name, command }) => ({
    name,
    command: [...command],
    ...termsView(termsOf(overlay, name)),
  })),
  checks: overlay.checks.map(({ command, ...check }) => ({ ...check, command: [...command] })),
})

const termsView = ({ user, environment, workingDirectory, restart, limits, template }: ServiceTerms) => ({
  ...(user !== null && { user }),
  ...(Object.keys(environment).length > 0 && { environment: { ...environment } }),
  ...(workingDirectory !== null && { workingDirectory }),
  ...(restart !== 'always' && { restart }),
  ...(Object.values(limits).some((limit) => limit !== null) && { limits: limitsView(limits) }),
  ...(template && { template }),
})

const limitsView = ({ memoryBytes, cpus, openFiles }: ServiceTerms['limits']) => ({
  ...(memoryBytes !== null && { memoryBytes }),
  ...(cpus !== null && { cpus }),
  ...(openFiles !== null && { openFiles }),
})
