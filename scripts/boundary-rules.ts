// Who may know whom (docs/ARCHITECTURE.md). One table says it for every folder; the rules below it look at one file of the
// repository each and return what is wrong. test/repository/boundaries.test.ts plants a violation of every one of them.

import * as path from 'node:path'
import { importsOf, unreadableImports, withoutComments, type Import } from './imports-of.ts'

type SourceFile = { readonly file: string; readonly text: string; readonly imports: readonly Import[] }
type Violation = { readonly line: number; readonly why: string }
type Rule = (source: SourceFile) => readonly Violation[]

/** A folder of a package (`.`: its root), a file of it, or the types of a folder and nothing else. */
type Known = string | { readonly types: string }
type Row = Readonly<Partial<Record<'domain' | 'wire' | 'plane' | 'agent' | 'cli', readonly Known[]>>>

const types = (...folders: string[]): readonly Known[] => folders.map((folder) => ({ types: folder }))

/** What Muster does, by the names of its folders in domain, plane, wire, cli and agent. The other folders are mechanics. */
export const features = [
  'alerts',
  'ca',
  'continuity',
  'enrollment',
  'federation',
  'fleet',
  'identity',
  'issuers',
  'journal',
  'network',
  'node',
  'operators',
  'plans',
  'programs',
  'recovery',
  'revocation',
  'settings',
  'tasks',
  'workers',
] as const

/**
 * Every folder, and the folders it may import besides its own. A file with a row of its own may import that, too. What no
 * file uses any more is taken out (scripts/boundaries.ts). There are no circles.
 */
export const mayKnow: Readonly<Record<string, Row>> = {
  // The platform knows nothing of Muster, and pki only how keys and times are called.
  platform: {},
  pki: { domain: ['core'] },

  // The language of the domain, and its two aggregates: the rows there are, and the values of the whole domain.
  'domain/core': {},
  'domain/core/change.ts': {
    domain: types(
      'alerts',
      'ca',
      'federation',
      'fleet',
      'identity',
      'issuers',
      'plans',
      'programs',
      'revocation',
      'tasks',
      'workers',
    ),
  },
  'domain/core/profile.ts': { domain: types('programs') },
  'domain/core/domain-settings.ts': { domain: types('continuity', 'fleet', 'identity') },

  // What is true and allowed, by feature.
  'domain/alerts': { domain: ['core'] },
  'domain/ca': { domain: ['core'] },
  'domain/continuity': { domain: ['alerts', 'core'] },
  'domain/enrollment': { domain: ['alerts', 'core', 'fleet', 'identity', 'network'] },
  'domain/federation': { domain: ['core'] },
  'domain/fleet': { domain: ['core', 'issuers', 'programs'] },
  'domain/identity': { domain: ['alerts', 'core', ...types('issuers')] },
  'domain/issuers': { domain: [...types('ca'), 'core'] },
  'domain/journal': { domain: ['core'] },
  'domain/network': { domain: ['core', 'fleet'] },
  'domain/node': { domain: ['core', 'fleet', 'recovery'] },
  'domain/operators': { domain: ['core'] },
  'domain/plans': { domain: ['ca', 'core', 'fleet', 'settings', 'tasks'] },
  'domain/programs': { domain: ['core', 'identity'] },
  'domain/recovery': { domain: ['core', 'identity'] },
  'domain/revocation': { domain: ['alerts', 'core', 'issuers', 'programs', 'recovery'] },
  'domain/settings': { domain: ['core', 'fleet', 'issuers', 'programs'] },
  'domain/tasks': { domain: ['core'] },
  'domain/workers': { domain: ['core', 'identity', 'issuers'] },

  // What crosses the network, and what operators are shown of the domain.
  'wire/core': { domain: ['continuity', 'core'] },
  'wire/channel': {
    domain: ['continuity'],
    wire: ['core', 'fleet', 'identity', 'network', 'node', 'programs', 'tasks'],
  },
  'wire/alerts': { domain: ['alerts'], wire: ['core'] },
  'wire/ca': { domain: ['ca', 'core'], wire: ['core'] },
  'wire/continuity': { domain: ['continuity'], wire: ['core'] },
  'wire/enrollment': { domain: ['core'], wire: ['core', 'identity', 'network'] },
  'wire/federation': { domain: ['federation'], wire: ['core'] },
  'wire/fleet': { domain: ['core', 'fleet'], wire: ['core', 'node', 'programs'] },
  'wire/identity': { domain: ['identity'], wire: ['core'] },
  'wire/issuers': { domain: ['issuers'], wire: ['core'] },
  'wire/journal': { wire: ['core'] },
  'wire/network': { domain: ['core', 'network'], wire: ['core'] },
  'wire/node': {
    domain: ['core', 'fleet', 'node'],
    wire: ['core', 'network', 'programs', 'recovery', 'revocation'],
  },
  'wire/operators': { domain: ['core'], wire: ['core'] },
  'wire/plans': {
    domain: ['core', 'plans', 'tasks'],
    wire: ['core', 'fleet', 'issuers', 'revocation', 'settings', 'tasks', 'workers'],
  },
  'wire/programs': { domain: ['core', 'programs'], wire: ['core'] },
  'wire/recovery': { domain: ['core'], wire: ['core', 'enrollment', 'identity'] },
  'wire/revocation': { domain: ['revocation'], wire: ['core'] },
  'wire/settings': { domain: ['core', 'fleet', 'issuers'], wire: ['core', 'fleet', 'issuers', 'programs'] },
  'wire/tasks': { domain: ['tasks'], wire: ['core'] },
  'wire/workers': { domain: ['core', 'workers'], wire: ['core', 'revocation', 'tasks'] },
  // Every call there is.
  wire: {
    wire: [
      'alerts',
      'ca',
      'continuity',
      'core',
      'enrollment',
      'federation',
      'fleet',
      'identity',
      'issuers',
      'journal',
      'node',
      'operators',
      'plans',
      'programs',
      'recovery',
      'revocation',
      'settings',
      'tasks',
      'workers',
    ],
  },

  // The plane: mechanics that know no feature.
  'plane/store/contract': { domain: ['alerts', 'ca', 'core', 'programs', 'tasks'], wire: ['core', 'node'] },
  'plane/store/journal': { domain: ['continuity', 'core'], plane: ['store/contract'] },
  'plane/store/commit': {
    domain: ['alerts', 'core', 'federation', 'fleet', 'identity', 'issuers', 'journal', 'programs', 'tasks', 'workers'],
    plane: ['store/journal'],
  },
  'plane/store/sql': {
    domain: ['core', 'programs', 'tasks'],
    plane: ['store/commit', 'store/contract', 'store/journal'],
  },
  'plane/store/sqlite': {
    domain: ['continuity', 'core'],
    plane: ['store/commit', 'store/contract', 'store/journal', 'store/sql'],
  },
  'plane/store/postgres': {
    domain: ['continuity', 'core', 'fleet'],
    plane: ['store/commit', 'store/contract', 'store/journal', 'store/sql'],
  },
  'plane/limits': { domain: ['core'] },
  'plane/core': {
    domain: [...types('ca'), 'core', 'fleet', 'identity', ...types('issuers'), 'journal', 'node', 'programs'],
    plane: ['limits', 'store/contract'],
    wire: ['channel', 'fleet', 'identity', 'network', 'programs'],
  },
  'plane/cluster': { domain: ['continuity', 'core'], plane: ['core', 'store/contract'], wire: ['core'] },
  'plane/sessions': { domain: ['core'], plane: ['cluster', 'core', 'store/contract'], wire: ['channel', 'core'] },
  'plane/liveness': { domain: ['core', 'node'], plane: ['cluster', 'core', 'sessions', 'store/contract'] },
  // Servers outside the domain, asked over HTTPS: the client, and logins at Vault.
  'plane/outside': { domain: ['issuers'] },
  'plane/keys': {
    domain: ['ca', 'core', 'issuers', 'operators'],
    plane: ['core', 'outside', 'store/contract', 'store/journal'],
  },
  'plane/seals': {
    domain: ['core', 'fleet', 'issuers', 'operators', 'tasks', 'workers'],
    plane: ['core', 'keys', 'store/commit', 'store/contract', 'store/journal'],
  },
  'plane/authority': {
    domain: ['alerts', 'ca', 'core', 'programs'],
    plane: ['core', 'keys', 'store/contract'],
    wire: ['ca'],
  },
  'plane/http': {
    domain: ['continuity', 'core'],
    plane: ['authority', 'keys', 'store/contract'],
    wire: ['.', 'core'],
  },
  'plane/files': { domain: ['core'], plane: ['http', 'limits'] },
  'plane/webhook': { domain: ['alerts', 'core'], plane: ['core', 'store/contract'] },
  'plane/config': { plane: ['http', 'keys', 'webhook'], wire: ['core'] },

  // The plane, by feature.
  'plane/alerts': {
    domain: ['alerts', 'core'],
    plane: ['authority', 'cluster', 'config', 'core', 'foundation', 'http', 'keys', 'store/contract', 'webhook'],
    wire: ['alerts', 'core'],
  },
  'plane/ca': {
    domain: ['ca', 'core'],
    plane: ['authority', 'core', 'cut-off', 'http', 'keys', 'limits', 'store/contract'],
    wire: ['ca', 'core'],
  },
  'plane/continuity': {
    domain: ['continuity', 'core'],
    plane: ['authority', 'cluster', 'core', 'http', 'sessions', 'store/contract', 'store/journal'],
    wire: ['continuity', 'core'],
  },
  'plane/enrollment': {
    domain: ['alerts', 'core', 'enrollment', 'fleet', 'identity', 'network', 'programs'],
    plane: ['alerts', ...types('authority'), 'core', 'files', 'http', 'identity', 'limits', 'network'],
    wire: ['core', 'enrollment', 'identity', 'network'],
  },
  'plane/federation': {
    domain: ['core', 'federation'],
    plane: ['authority', 'core', 'http', 'limits', 'store/commit', 'store/contract'],
    wire: ['core', 'federation'],
  },
  'plane/fleet': {
    domain: ['core', 'fleet'],
    plane: [...types('authority'), 'core', 'http', 'limits', 'node', 'store/contract', 'store/journal'],
    wire: ['core', 'fleet', 'node'],
  },
  'plane/identity': {
    domain: ['alerts', 'core', 'fleet', 'identity', 'issuers'],
    plane: [
      'alerts',
      'authority',
      'cluster',
      'core',
      'cut-off',
      'http',
      'issuers',
      'limits',
      'liveness',
      'sessions',
      'store/contract',
    ],
    wire: ['core', 'enrollment', 'identity'],
  },
  'plane/issuers': {
    domain: ['alerts', 'ca', 'core', 'identity', 'issuers', 'programs', 'workers'],
    plane: ['alerts', 'cluster', 'core', 'http', 'keys', 'limits', 'outside', 'store/contract'],
    wire: ['identity', 'issuers', 'programs'],
  },
  'plane/journal': {
    domain: ['alerts', 'core', 'enrollment', 'fleet', 'journal', 'revocation'],
    plane: ['alerts', 'core', 'http', 'store/contract', 'store/journal'],
    wire: ['core', 'journal'],
  },
  'plane/network': {
    domain: ['core', 'fleet', 'network'],
    plane: ['cluster', 'core', 'limits', 'sessions', 'store/contract'],
    wire: ['channel', 'network'],
  },
  'plane/node': {
    domain: [
      'alerts',
      'core',
      'enrollment',
      'fleet',
      'identity',
      'issuers',
      'node',
      'programs',
      'recovery',
      'revocation',
    ],
    plane: ['authority', 'core', 'cut-off', 'http', 'limits', 'recovery', 'revocation', 'store/contract'],
    wire: ['core', 'network', 'node', 'programs', 'recovery', 'revocation'],
  },
  'plane/operators': { domain: ['core', 'operators'], plane: ['core', 'http'], wire: ['operators'] },
  'plane/programs': {
    domain: ['alerts', 'core', 'issuers', 'programs'],
    plane: [...types('alerts'), 'authority', 'core', 'http', 'issuers', 'limits'],
    wire: ['programs'],
  },
  'plane/plans': {
    domain: ['ca', 'core', 'fleet', 'issuers', 'node', 'plans', 'revocation', 'settings', 'tasks', 'workers'],
    plane: [
      'authority',
      'ca',
      'core',
      'enrollment',
      'fleet',
      'http',
      'issuers',
      'node',
      'revocation',
      'settings',
      'store/contract',
      'tasks',
      'workers',
    ],
    wire: ['fleet', 'issuers', 'plans', 'revocation', 'workers'],
  },
  'plane/recovery': {
    domain: ['core', 'fleet', 'identity', 'recovery'],
    plane: [...types('authority'), 'continuity', 'core', 'enrollment', 'http', 'identity', 'limits', 'store/contract'],
    wire: ['core', 'identity', 'recovery'],
  },
  'plane/revocation': {
    domain: ['alerts', 'core', 'fleet', 'identity', 'network', 'programs', 'revocation'],
    plane: ['core', 'http', 'network', 'store/contract'],
    wire: ['core', 'revocation'],
  },
  'plane/settings': {
    domain: ['core', 'enrollment', 'plans', 'programs', 'settings'],
    plane: [...types('authority'), 'core', 'http', 'store/contract'],
    wire: ['core', 'settings'],
  },
  'plane/tasks': {
    domain: ['core', 'operators', 'tasks', 'workers'],
    plane: [...types('authority'), 'core', 'files', 'http', 'keys', 'sessions', 'store/contract'],
    wire: ['core', 'tasks'],
  },
  'plane/workers': {
    domain: ['core', 'issuers', 'workers'],
    plane: [...types('authority'), 'core', 'cut-off', 'http', 'issuers', 'limits', 'tasks'],
    wire: ['revocation', 'tasks', 'workers'],
  },

  // The plane: what stands on features.
  'plane/cut-off': { domain: ['alerts', 'ca', 'core'], plane: ['alerts', 'core', 'store/contract'] },
  'plane/authn': {
    domain: ['alerts', 'ca', 'core', 'enrollment', 'identity', 'operators', 'workers'],
    plane: ['alerts', ...types('authority'), 'core', 'identity', 'limits', 'store/contract'],
    wire: ['core'],
  },
  'plane/channel': {
    domain: ['core', 'fleet', 'identity'],
    plane: [
      'cluster',
      'continuity',
      'core',
      'fleet',
      'identity',
      'limits',
      'liveness',
      'network',
      'node',
      'programs',
      'sessions',
      'store/contract',
      'tasks',
    ],
    wire: ['channel', 'core', 'network', 'node', 'programs', 'tasks'],
  },
  'plane/metrics': {
    domain: ['alerts', 'core'],
    plane: ['alerts', 'authority', 'ca', 'core', 'journal', 'limits', 'node', 'store/contract', 'webhook'],
    wire: ['recovery'],
  },
  'plane/foundation': {
    domain: ['ca', 'continuity', 'core', 'operators'],
    plane: [
      'authority',
      'config',
      'core',
      'keys',
      'operators',
      'seals',
      'store/contract',
      'store/journal',
      'store/postgres',
      'store/sqlite',
      'webhook',
    ],
  },
  'plane/store/copy': {
    domain: ['core'],
    plane: [
      'config',
      'foundation',
      'keys',
      'store/commit',
      'store/contract',
      'store/journal',
      'store/postgres',
      'store/sql',
      'store/sqlite',
    ],
  },
  'plane/boot': {
    domain: ['continuity', 'core', 'identity', 'operators', 'programs'],
    plane: [
      'alerts',
      'authn',
      'authority',
      'ca',
      'channel',
      'cluster',
      'config',
      'continuity',
      'core',
      'cut-off',
      'enrollment',
      'federation',
      'files',
      'fleet',
      'foundation',
      'http',
      'identity',
      'issuers',
      'journal',
      'keys',
      'limits',
      'liveness',
      'metrics',
      'node',
      'operators',
      'plans',
      'programs',
      'recovery',
      'revocation',
      'settings',
      'store/contract',
      'tasks',
      'workers',
    ],
    wire: ['.', 'core', 'operators'],
  },
  plane: {
    domain: ['core'],
    plane: [
      'alerts',
      'authn',
      'authority',
      'boot',
      'config',
      'continuity',
      'core',
      'cut-off',
      'foundation',
      'http',
      'issuers',
      'journal',
      'metrics',
      'seals',
      'settings',
    ],
  },

  // The agent. agent-parts.ts names all of its parts.
  'agent/core': { domain: ['core', 'network', 'recovery'], wire: ['core', 'enrollment'] },
  'agent/core/agent-parts.ts': {
    agent: types(
      'channel',
      'continuity',
      'diagnostics',
      'fleet',
      'link',
      'network',
      'programs',
      'recovery',
      'state',
      'tasks',
    ),
  },
  'agent/state': { agent: ['core'], domain: ['core'], wire: ['core', 'enrollment', 'identity', 'recovery'] },
  'agent/link': {
    agent: ['core', 'state'],
    domain: ['core', 'recovery'],
    wire: ['channel', 'core', 'enrollment', 'fleet', 'identity', 'programs', 'recovery', 'tasks'],
  },
  'agent/diagnostics': { agent: ['core', 'state'], domain: ['core', 'node', 'recovery'], wire: ['core', 'node'] },
  'agent/continuity': { agent: ['state'], domain: ['continuity'], wire: ['channel', 'core'] },
  'agent/enrollment': {
    agent: ['core', 'link', 'network', 'state'],
    wire: ['core', 'enrollment', 'identity', 'network'],
  },
  'agent/fleet': {
    agent: ['core', 'diagnostics', 'link', 'state'],
    domain: ['fleet'],
    wire: ['channel', 'core', 'fleet', 'node'],
  },
  'agent/helper': { agent: ['helper/overlay', 'helper/tasks', 'programs'], wire: ['core', 'fleet', 'programs'] },
  'agent/helper/overlay': { agent: ['helper/tasks'], wire: ['core', 'fleet'] },
  'agent/helper/tasks': { wire: ['core', 'tasks'] },
  'agent/identity': {
    agent: ['core', 'diagnostics', 'enrollment', 'link', 'recovery', 'state'],
    domain: ['core'],
    wire: ['identity'],
  },
  'agent/network': { agent: ['core', 'diagnostics', 'state'], domain: ['network'], wire: ['network'] },
  'agent/programs': {
    agent: ['core', 'diagnostics', 'link', 'state'],
    domain: ['core'],
    wire: ['programs'],
  },
  'agent/tasks': { agent: ['core', 'diagnostics', 'link', 'state'], wire: ['core', 'tasks'] },
  'agent/recovery': {
    agent: ['core', 'diagnostics', 'enrollment', 'link', 'state'],
    domain: ['core'],
    wire: ['enrollment', 'identity', 'recovery'],
  },
  'agent/channel': {
    agent: ['core', 'identity', 'link', 'network', 'programs', 'state'],
    domain: ['core'],
    wire: ['channel', 'core', 'enrollment', 'fleet', 'identity', 'network', 'node', 'programs', 'tasks'],
  },
  agent: {
    agent: [
      'channel',
      'continuity',
      'core',
      'diagnostics',
      'enrollment',
      'fleet',
      'helper',
      'helper/tasks',
      'identity',
      'link',
      'network',
      'programs',
      'recovery',
      'state',
      'tasks',
    ],
  },

  // The command line. It comes to the plane and the agent through the files that are named here.
  'cli/kit': { wire: ['alerts', 'core', 'enrollment', 'fleet', 'node', 'operators', 'settings'] },
  'cli/alerts': { cli: ['kit'], domain: ['alerts'], wire: ['alerts'] },
  'cli/ca': {
    cli: ['kit', 'plane', 'plans'],
    domain: types('core'),
    plane: [
      'authority/root-key.ts',
      'authority/sign-intermediate.ts',
      'config/config.ts',
      'config/key-settings.ts',
      'foundation/first-ceremony.ts',
      'foundation/initialise-plane.ts',
      'foundation/replace-lost-key.ts',
      'keys/key-unavailable.ts',
      'keys/keys-elsewhere.ts',
    ],
    wire: ['ca', 'programs'],
  },
  'cli/enrollment': { cli: ['kit', 'plans'], domain: ['core'], wire: ['core', 'enrollment'] },
  'cli/federation': { cli: ['kit'], wire: ['federation'] },
  'cli/fleet': { cli: ['kit', 'plans'], domain: ['core', 'fleet'], wire: ['core', 'fleet'] },
  'cli/identity': { cli: ['kit'], wire: ['identity'] },
  'cli/issuers': { cli: ['kit'], domain: ['core', 'issuers'], wire: ['issuers'] },
  'cli/journal': {
    cli: ['kit'],
    domain: ['core'],
    plane: ['store/journal/canonical-json.ts'],
    wire: ['core', 'journal'],
  },
  'cli/node': {
    cli: ['kit', 'plans', 'programs', 'revocation'],
    domain: ['core', 'fleet', 'plans', 'recovery'],
    wire: ['ca', 'core', 'enrollment', 'fleet', 'node', 'plans', 'programs', 'revocation', 'settings'],
  },
  'cli/operators': {
    cli: ['kit', 'plane'],
    domain: ['core'],
    plane: ['config/config.ts', 'boot/create-key-offline.ts'],
    wire: ['core', 'operators'],
  },
  'cli/plans': { cli: ['kit', 'revocation'], domain: ['core', 'plans'], wire: ['core', 'plans'] },
  'cli/programs': { cli: ['kit'], wire: ['programs'] },
  'cli/revocation': { cli: ['kit'], domain: ['core'], wire: ['revocation'] },
  'cli/settings': { cli: ['identity', 'kit', 'plans'], wire: ['core', 'enrollment', 'identity', 'settings'] },
  'cli/tasks': { cli: ['kit', 'node', 'plans'], domain: ['core', 'tasks'], wire: ['plans', 'tasks'] },
  'cli/workers': { cli: ['kit', 'revocation'], wire: ['core', 'workers'] },
  'cli/node/bundle': {},
  'cli/agent': {
    agent: [
      'core/config.ts',
      'core/hardware-report.ts',
      'core/outcome.ts',
      'core/pause.ts',
      'core/settings.ts',
      'diagnostics/explain.ts',
      'diagnostics/status-file.ts',
      'diagnostics/status.ts',
      'helper/agent-toml.ts',
      'helper/faults-of-toml.ts',
      'helper/main.ts',
      'helper/read-agent-toml.ts',
      'helper/settings.ts',
      'helper/tasks/statement-file.ts',
      'helper/tasks/tasks-toml.ts',
      'helper/verbs.ts',
      'helper/written-lists.ts',
      'main.ts',
      'recovery/repair.ts',
    ],
    cli: ['kit'],
    domain: ['core', 'programs'],
    wire: ['core', 'recovery'],
  },
  'cli/plane': {
    cli: ['kit'],
    plane: [
      'config/config.ts',
      'config/settings.ts',
      'foundation/check-set-up.ts',
      'foundation/initialise-plane.ts',
      'foundation/store-damage.ts',
      'keys/key-unavailable.ts',
      'main.ts',
    ],
    wire: ['core'],
  },
  'cli/store': {
    cli: ['kit', 'plane'],
    plane: [
      'config/config.ts',
      'store/copy/backup-store.ts',
      'store/copy/copy-refusal.ts',
      'store/copy/copy-run.ts',
      'store/copy/copy-store.ts',
      'store/copy/manifest.ts',
      'store/copy/migrate-store.ts',
      'store/copy/store-status.ts',
    ],
    wire: ['continuity'],
  },
  'cli/top': { cli: ['kit'], wire: ['alerts', 'core', 'journal', 'settings'] },
  'cli/demo': {
    agent: ['core/config.ts', 'core/pause.ts', 'main.ts'],
    cli: ['kit', 'node', 'plane'],
    wire: ['core', 'enrollment', 'node'],
  },
  cli: {
    cli: [
      'agent',
      'alerts',
      'ca',
      'demo',
      'enrollment',
      'federation',
      'fleet',
      'identity',
      'issuers',
      'journal',
      'kit',
      'node',
      'operators',
      'plane',
      'plans',
      'programs',
      'revocation',
      'settings',
      'store',
      'tasks',
      'top',
      'workers',
    ],
  },
  bin: { cli: ['all-nouns.ts', 'node-nouns.ts', 'kit/as-called.ts', 'kit/run-cli.ts'] },
}

const pureClock: Allowed = {
  from: 'src/platform/clock.ts',
  names: ['isoTime', 'isoTimeOrNull', 'parseIsoTime', 'Clock'],
}
const secretShapes: Allowed = { from: 'src/platform/secret-shapes.ts', names: ['redactSecrets'] }
const jsonSchemas = 'src/platform/json-schema.ts'
const ipAddresses = 'src/platform/ip-address.ts'

/** A folder (ends in `/`), a file, a package or a built-in; perhaps only some names of it. */
type Allowed = string | { readonly from: string; readonly names: readonly string[] }

/** The pure packages import nothing but this and what the table says; the others are free to use packages and built-ins. */
const closedPackages: Readonly<Record<string, readonly Allowed[]>> = {
  domain: [pureClock, secretShapes, ipAddresses],
  wire: [pureClock, secretShapes, jsonSchemas, 'typebox', 'typebox/'],
  pki: [pureClock, 'src/platform/bytes.ts', ipAddresses, 'node:crypto', 'node:buffer'],
}

/** What the other packages may use as a whole. */
const openPackages: Readonly<Record<string, readonly string[]>> = {
  platform: [],
  plane: ['pki', 'platform'],
  agent: ['pki', 'platform'],
  cli: ['pki', 'platform'],
  bin: ['platform'],
}

export const violationsIn = (file: string, text: string): string[] => {
  const source = { file, text: withoutComments(text), imports: importsOf(file, text) }
  const found = rules.flatMap((rule) => rule(source))
  return found.map(({ line, why }) => `${file}:${line} ${why}`)
}

const isTest = (file: string): boolean => file.endsWith('.test.ts') || file.startsWith('test/')
const inSource = (file: string): boolean => file.startsWith('src/') || file.startsWith('bin/')

/** `plane/alerts` of a file in `src/plane/alerts/`. */
export const folderOf = (file: string): string => path.posix.dirname(file).replace(/^src\//, '')
const packageOf = (file: string): string => folderOf(file).split('/')[0] ?? ''

const folders: Rule = ({ file, imports }) => {
  if (!inSource(file)) return []
  const here = folderOf(file)
  if (!Object.hasOwn(mayKnow, here))
    return [{ line: 1, why: `${placeOf(here)} is not in the table of scripts/boundary-rules.ts` }]
  return imports
    .filter((wanted) => !isAllowed(file, wanted))
    .map((wanted) => ({ line: wanted.line, why: `${placeOf(here)} may not import ${named(wanted)}` }))
}

const isAllowed = (file: string, wanted: Import): boolean => {
  const own = packageOf(file)
  const closed = closedPackages[own]
  if (!inSource(wanted.from)) return closed === undefined || isTest(file) || allows(closed, wanted)
  const there = packageOf(wanted.from)
  if (folderOf(wanted.from) === folderOf(file)) return true
  if (there === 'pki' || there === 'platform')
    return closed === undefined ? (openPackages[own] ?? []).includes(there) : allows(closed, wanted)
  // Tests may use any part of their own package; what the whole package may not know, they may not either.
  if (isTest(file)) return there === own || rowsOf(own).some((row) => listedIn(row, wanted) !== null)
  return permissionFor(file, wanted) !== null
}

const allows = (allowed: readonly Allowed[], wanted: Import): boolean =>
  allowed.some((entry) => {
    if (typeof entry === 'string') return entry.endsWith('/') ? wanted.from.startsWith(entry) : wanted.from === entry
    return (
      wanted.from === entry.from && wanted.names !== null && wanted.names.every((name) => entry.names.includes(name))
    )
  })

/** The line of the table that allows an import, as `row -> entry`; null: none does. */
export const permissionFor = (file: string, wanted: Import): string | null => {
  const here = folderOf(file)
  for (const key of [here, `${here}/${path.posix.basename(file)}`]) {
    const entry = listedIn(mayKnow[key] ?? {}, wanted)
    if (entry !== null) return `${key} -> ${entry}`
  }
  return null
}

/** Every line there is, as `permissionFor` names them. */
export const everyPermission = (): string[] =>
  Object.entries(mayKnow).flatMap(([key, row]) =>
    Object.entries(row).flatMap(([name, known]) => known.map((entry) => `${key} -> ${nameOf(name, entry)}`)),
  )

const listedIn = (row: Row, wanted: Import): string | null => {
  for (const [name, known] of Object.entries(row)) {
    for (const entry of known) {
      const to = nameOf(name, entry)
      if (typeof entry !== 'string' && !wanted.typesOnly) continue
      if (to === folderOf(wanted.from) || `src/${to}` === wanted.from) return to
    }
  }
  return null
}

const nameOf = (name: string, entry: Known): string => {
  const within = typeof entry === 'string' ? entry : entry.types
  return within === '.' ? name : `${name}/${within}`
}

const rowsOf = (name: string): Row[] =>
  Object.entries(mayKnow)
    .filter(([key]) => key === name || key.startsWith(`${name}/`))
    .map(([, row]) => row)

const placeOf = (folder: string): string => (folder === 'bin' ? 'bin/' : `src/${folder}/`)

/** Code in src never imports tests, benchmarks or scripts; tests beside it may. */
const noTestCode: Rule = ({ file, imports }) =>
  inSource(file) && !isTest(file)
    ? imports
        .filter((wanted) => /^(test|bench|scripts)\//.test(wanted.from) || wanted.from.endsWith('.test.ts'))
        .map((wanted) => ({ line: wanted.line, why: `src may not import ${wanted.from}` }))
    : []

const withEffects =
  /^node:(fs|net|tls|https?|http2|dns|dgram|child_process|ffi|sqlite|timers|worker_threads|cluster|perf_hooks|readline|repl|inspector)(\/.*)?$/

const effects: Rule = ({ file, imports }) => {
  if (!inSource(file) || isTest(file) || file.startsWith('src/platform/')) return []
  return imports
    .filter((wanted) => withEffects.test(wanted.from) && !wanted.typesOnly)
    .filter((wanted) => !(wanted.from === 'node:sqlite' && file.startsWith('src/plane/store/')))
    .filter((wanted) => !(wanted.from === 'node:net' && onlyAddressChecks(wanted)))
    .map((wanted) => ({ line: wanted.line, why: `${wanted.from} belongs to src/platform` }))
}

/** `isIP` and its like compute; everything else in node:net opens sockets. */
const onlyAddressChecks = (wanted: Import): boolean =>
  wanted.names !== null && wanted.names.every((name) => /^isIP(v[46])?$/.test(name))

const randomNames = /^(random\w*|webcrypto|getRandomValues|subtle)$/

const randomness: Rule = ({ file, imports }) => {
  if (!inSource(file) || isTest(file) || file.startsWith('src/platform/')) return []
  return imports
    .filter((wanted) => wanted.from === 'node:crypto' && !wanted.typesOnly)
    .filter((wanted) => wanted.names === null || wanted.names.some((name) => randomNames.test(name)))
    .map((wanted) => ({
      line: wanted.line,
      why: 'import from node:crypto by name, and randomness from src/platform/random.ts',
    }))
}

const ordersAreDecided: Rule = ({ file, text }) =>
  inSource(file) && !isTest(file) && !file.startsWith('src/domain/')
    ? linesWith(text, /\bplaceOrder\b/).map((line) => ({ line, why: 'only a decision in src/domain places an order' }))
    : []

/**
 * Where Node's own check of a certificate is replaced: the node listener wants a client certificate and judges it itself;
 * the agent's first contact knows only a fingerprint. src/platform carries their decision to Node and makes none.
 * Saying `true` is allowed anywhere: it beats the environment.
 */
const verifiesByItself: ReadonlySet<string> = new Set([
  'src/plane/boot/node-listener.ts',
  'src/agent/link/verified-connection.ts',
])

const verification: Rule = ({ file, text }) => {
  if (verifiesByItself.has(file) || aboutTheseRules.has(file)) return []
  const shape = file.startsWith('src/platform/')
    ? /rejectUnauthorized\W*\b(false|0)\b/
    : /rejectUnauthorized(?!: true\b)/
  return linesWith(text, shape).map((line) => ({
    line,
    why: `rejectUnauthorized belongs to ${[...verifiesByItself].join(' and ')}`,
  }))
}

const aboutTheseRules = new Set(['scripts/boundary-rules.ts', 'test/repository/boundaries.test.ts'])

/** Turns the switch on, to show that the agent does not heed it. */
const testOfTheSwitch = 'test/flows/agent-hostile-plane.test.ts'

const noGlobalSwitch: Rule = ({ file, text }) =>
  aboutTheseRules.has(file) || file === testOfTheSwitch
    ? []
    : linesWith(text, /NODE_TLS_REJECT_UNAUTHORIZED/).map((line) => ({
        line,
        why: 'NODE_TLS_REJECT_UNAUTHORIZED turns verification off everywhere',
      }))

const unreadable: Rule = ({ file, text }) =>
  inSource(file) && !isTest(file)
    ? unreadableImports(text).map((line) => ({
        line,
        why: 'a module is loaded by a computed name, which no boundary can see',
      }))
    : []

const rules: readonly Rule[] = [
  folders,
  noTestCode,
  effects,
  randomness,
  ordersAreDecided,
  verification,
  noGlobalSwitch,
  unreadable,
]

const linesWith = (text: string, shape: RegExp): number[] =>
  text.split('\n').flatMap((line, index) => (shape.test(line) ? [index + 1] : []))

const named = (wanted: Import): string =>
  wanted.names === null || !wanted.from.startsWith('src/')
    ? wanted.from
    : `${wanted.names.join(', ')} from ${wanted.from}`
