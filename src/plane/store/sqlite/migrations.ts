// The schema, as the steps that made it. A step that has shipped is never edited; the file's `user_version` says how
// many were taken, and each is taken whole or not at all.

import type { Database } from '#platform/sqlite.ts'
import { notAStore, StoreRefused } from '#plane/store/contract/store-errors.ts'
import { claimsOnServed, servedEntryType } from '#plane/store/sql/names-served-before.ts'
import { transact } from './transact.ts'

/** "MSTR": distinguishes our file from any other SQLite database. */
const applicationId = 0x4d535452

const documents = (table: string, columns: string): string =>
  `CREATE TABLE ${table} (key TEXT PRIMARY KEY, version INTEGER NOT NULL, doc TEXT NOT NULL${columns}) STRICT;`

/** The text at a place of a document. An index is used where its expression is the very same. */
export const documentText = (path: readonly (string | number)[]): string =>
  `iif(json_valid(doc), json_extract(doc, '$${path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('')}'), NULL)`

export const migrations: readonly string[] = [
  `${documents('node', ', membership TEXT NOT NULL, profile TEXT NOT NULL')}
   CREATE INDEX node_by_membership ON node (membership, key);
   ${documents('token', ', id TEXT NOT NULL UNIQUE, node TEXT')}
   CREATE INDEX token_by_node ON token (node);
   ${documents('certificate', ', node TEXT, not_after_ms INTEGER NOT NULL')}
   CREATE INDEX certificate_by_end ON certificate (not_after_ms);
   ${documents('denial', ', until_ms INTEGER NOT NULL')}
   CREATE INDEX denial_by_end ON denial (until_ms);
   ${documents('key_ban', '')}
   ${documents('profile', '')}
   ${documents('domain', '')}
   ${documents('operator_key', ', id TEXT NOT NULL UNIQUE, live_name TEXT UNIQUE')}
   ${documents('issuer', '')}

   CREATE TABLE hardware (value TEXT PRIMARY KEY, node TEXT NOT NULL) STRICT, WITHOUT ROWID;
   CREATE INDEX hardware_by_node ON hardware (node);

   CREATE TABLE journal_base (id INTEGER PRIMARY KEY CHECK (id = 1), chain TEXT NOT NULL, domain TEXT NOT NULL,
     sequence INTEGER NOT NULL, hash BLOB NOT NULL, signature BLOB NOT NULL, key_id TEXT NOT NULL) STRICT;
   CREATE TABLE journal (sequence INTEGER PRIMARY KEY, operation TEXT NOT NULL UNIQUE, bytes TEXT NOT NULL,
     hash BLOB NOT NULL, signature BLOB, key_id TEXT, node TEXT, type TEXT NOT NULL) STRICT;
   CREATE INDEX journal_by_node ON journal (node, sequence) WHERE node IS NOT NULL;
   CREATE INDEX journal_by_type ON journal (type, sequence);

   CREATE TABLE observation (node TEXT PRIMARY KEY, last_seen_ms INTEGER, agent_version TEXT, source TEXT,
     config_revision INTEGER) STRICT, WITHOUT ROWID;
   CREATE TABLE write_probe (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;`,

  // Recovery, rehearsals, reports and alerts. Earlier nodes have no counter to compare and nothing registered.
  `UPDATE node SET doc = json_set(doc, '$.counter', 0, '$.recovery', json('null'), '$.repair', json('null'),
     '$.rehearsal', json('null'));
   UPDATE node SET doc = json_set(doc, '$.membership.slots', json('null')) WHERE membership = 'quarantined';
   UPDATE profile SET doc = json_set(doc, '$.recovery.rehearseEveryMs', 86400000, '$.onDuplicate',
     iif(key = 'high-assurance', 'fence', 'keep-live'));
   ALTER TABLE observation ADD COLUMN report TEXT;
   ALTER TABLE observation ADD COLUMN rehearsed_at_ms INTEGER;
   ALTER TABLE observation ADD COLUMN evidence TEXT;
   ${documents('alert', ', id TEXT NOT NULL UNIQUE, unresolved INTEGER NOT NULL')}
   CREATE INDEX alert_unresolved ON alert (unresolved, id);
   CREATE TABLE webhook_progress (id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL) STRICT;`,

  // Whether the store is the one its nodes have seen.
  `UPDATE domain SET doc = json_set(doc, '$.continuity', json('{"lineage":0,"doubt":null}'));`,

  // The fleet: vClusters, allocations, WireGuard, receipts, plans, other domains.
  `ALTER TABLE node ADD COLUMN vcluster TEXT;
   CREATE INDEX node_by_vcluster ON node (vcluster, key) WHERE vcluster IS NOT NULL;
   UPDATE node SET vcluster = json_extract(doc, '$.assignment'), doc = json_set(doc, '$.allocations', 0,
     '$.wireguard', json('null'), '$.machine', json('{"tags":[],"firmware":null,"readiness":null,"slots":[]}'));
   UPDATE profile SET doc = json_set(doc, '$.wireguard', json('{"mode":"off","listenPort":51820,"mtu":1420}'));
   UPDATE domain SET doc = json_set(doc, '$.issuance', json('{"kind":"open"}'), '$.overlayPrefix', json('null'),
     '$.maintenance', json('{"policy":{"enforcementMode":"observe","execWhitelist":[],"shellWhitelist":[],"regulated":false},"timeSync":null}'));
   UPDATE denial SET doc = json_set(doc, '$.atMs', 0, '$.reason', 'unspecified');
   UPDATE issuer SET doc = json_set(doc, '$.compromisedAtMs', json('null'));
   ALTER TABLE observation ADD COLUMN capabilities TEXT;
   ALTER TABLE observation ADD COLUMN overlay TEXT;
   CREATE INDEX certificate_by_node ON certificate (node, key) WHERE node IS NOT NULL;
   ${documents('vcluster', '')}
   ${documents('allocation', ', node TEXT NOT NULL, vcluster TEXT NOT NULL, state TEXT NOT NULL, until_ms INTEGER')}
   CREATE INDEX allocation_by_node ON allocation (node, state, key);
   CREATE INDEX allocation_by_vcluster ON allocation (vcluster, state, key);
   CREATE INDEX allocation_by_end ON allocation (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('wireguard_key', '')}
   ${documents('overlay_address', '')}
   ${documents('receipt', ', node TEXT NOT NULL, unsettled INTEGER NOT NULL')}
   CREATE INDEX receipt_by_node ON receipt (node, key);
   CREATE INDEX receipt_unsettled ON receipt (key) WHERE unsettled = 1;
   ${documents('plan', ', until_ms INTEGER NOT NULL')}
   ${documents('peer_domain', '')}
   ${documents('claim', ', hardware TEXT NOT NULL, domain TEXT NOT NULL, until_ms INTEGER NOT NULL')}
   CREATE INDEX claim_by_hardware ON claim (hardware, key);
   CREATE INDEX claim_by_domain ON claim (domain, key);
   ${documents('hardware_profile', '')}`,

  // 0.2.1
  `-- One source gets a part of the budget for failing callers. The default of before gave it all of it.
   UPDATE domain SET doc = json_set(doc, '$.strangersPerMinutePerSource', 25)
     WHERE json_extract(doc, '$.strangersPerMinutePerSource') = 100 AND json_extract(doc, '$.strangersPerMinute') = 100;
   -- Profiles: the silence that admits another caller.
   UPDATE profile SET doc = json_set(doc, '$.probeSilenceMs', 30000);
   -- Claims on public keys: for every key that a node's row names. Nodes that share one are all in its claim.
   ${documents('key_claim', ', shared INTEGER NOT NULL')}
   CREATE INDEX key_claim_shared ON key_claim (shared, key) WHERE shared = 1;
   INSERT INTO key_claim (key, version, doc, shared)
     SELECT spki, 1, json_object('spki', spki, 'holders',
       json_group_array(json_object('node', node, 'use', use, 'sinceMs', since))), count(DISTINCT node) > 1
     FROM (SELECT spki, node, use, min(since) AS since FROM (
       ${['current', 'pending', 'retired.slot']
         .map(
           (slot) => `SELECT json_extract(doc, '$.membership.slots.${slot}.spki') AS spki, key AS node, 'tls' AS use,
           json_extract(doc, '$.membership.slots.${slot}.issuedAtMs') AS since FROM node UNION ALL `,
         )
         .join('')}
       SELECT json_extract(doc, '$.recovery.credential.spki'), key, 'recovery',
         json_extract(doc, '$.recovery.credential.registeredAtMs') FROM node)
       WHERE spki IS NOT NULL GROUP BY spki, node, use ORDER BY node, use)
     GROUP BY spki;
   -- lived: how long planes have led on this store, in milliseconds of monotonic time (lived-time.ts).
   CREATE TABLE lived (id INTEGER PRIMARY KEY CHECK (id = 1), ms INTEGER NOT NULL) STRICT;
   -- A domain of before has lived for as long as its journal shows by entries less than an hour apart. In the order of their
   -- times, so that a clock that was wrong for a while adds the hour of its jump and the time it really ran. Up to about
   -- 50,000 entries are looked at; fewer entries never make it more.
   INSERT INTO lived (id, ms)
     WITH RECURSIVE
       span AS (SELECT (SELECT min(sequence) FROM journal) AS first, (SELECT max(sequence) FROM journal) AS last),
       pace AS (SELECT first, last, max(1, (last - first) / 50000) AS step FROM span WHERE first IS NOT NULL),
       place AS (SELECT first AS sequence, last, step FROM pace
         UNION ALL SELECT sequence + step, last, step FROM place WHERE sequence + step <= last),
       written AS (SELECT CAST(substr(bytes, instr(bytes, '"atMs":') + 7, 15) AS INTEGER) AS ms
         FROM place CROSS JOIN journal USING (sequence) WHERE instr(bytes, '"atMs":') > 0),
       gap AS (SELECT ms - lag(ms) OVER (ORDER BY ms) AS ms FROM written)
     SELECT 1, coalesce(sum(min(ms, 3600000)), 0) FROM gap WHERE ms IS NOT NULL;`,

  // 0.3.0
  `-- Chains that replicas wrote before the store came here. They are read and verified, and get no more entries.
   CREATE TABLE closed_chain (chain TEXT PRIMARY KEY, domain TEXT NOT NULL, base_sequence INTEGER NOT NULL,
     base_hash BLOB NOT NULL, base_signature BLOB NOT NULL, base_key_id TEXT NOT NULL, sequence INTEGER NOT NULL,
     hash BLOB NOT NULL) STRICT, WITHOUT ROWID;
   CREATE TABLE closed_entry (chain TEXT NOT NULL, sequence INTEGER NOT NULL, operation TEXT NOT NULL UNIQUE,
     bytes TEXT NOT NULL, hash BLOB NOT NULL, signature BLOB, key_id TEXT, node TEXT, type TEXT NOT NULL,
     PRIMARY KEY (chain, sequence)) STRICT;
   CREATE INDEX closed_entry_by_node ON closed_entry (chain, node, sequence) WHERE node IS NOT NULL;
   CREATE INDEX closed_entry_by_type ON closed_entry (chain, type, sequence);
   -- Every chain and every entry, as the tables of PostgreSQL have them.
   CREATE VIEW chain AS
     SELECT chain, domain, sequence AS base_sequence, hash AS base_hash, signature AS base_signature,
       key_id AS base_key_id, coalesce((SELECT max(sequence) FROM journal), sequence) AS sequence,
       coalesce((SELECT hash FROM journal ORDER BY sequence DESC LIMIT 1), hash) AS hash FROM journal_base
     UNION ALL SELECT chain, domain, base_sequence, base_hash, base_signature, base_key_id, sequence, hash FROM closed_chain;
   CREATE VIEW every_entry AS
     SELECT (SELECT chain FROM journal_base) AS chain, sequence, operation, bytes, hash, signature, key_id, node, type
     FROM journal
     UNION ALL SELECT chain, sequence, operation, bytes, hash, signature, key_id, node, type FROM closed_entry;`,

  // 0.4.0
  `-- A row that cannot be read stays as it is, and does not keep the store from being brought up to date.
   -- Profiles and vClusters: no outputs yet. The domain: how long revocation lists for programs are good for.
   UPDATE profile SET doc = json_set(doc, '$.outputs', json('[]')) WHERE json_valid(doc);
   UPDATE vcluster SET doc = json_set(doc, '$.outputs', json('[]')) WHERE json_valid(doc);
   UPDATE domain SET doc = json_set(doc, '$.programListMs', 604800000) WHERE json_valid(doc);
   ${documents('program', ', node TEXT NOT NULL, until_ms INTEGER NOT NULL')}
   CREATE INDEX program_by_node ON program (node, key);
   CREATE INDEX program_by_end ON program (until_ms);
   ${documents('name_claim', ', node TEXT, holder TEXT NOT NULL')}
   CREATE INDEX name_claim_by_node ON name_claim (node, key) WHERE node IS NOT NULL;
   CREATE INDEX name_claim_by_holder ON name_claim (holder, key);
   ${documents('purged_node', '')}
   CREATE INDEX key_claim_by_holder ON key_claim (${documentText(['holders', 0, 'node'])}, key);
   CREATE INDEX wireguard_key_by_node ON wireguard_key (${documentText(['node'])}, key);
   CREATE INDEX overlay_address_by_node ON overlay_address (${documentText(['node'])}, key);
   CREATE INDEX alert_by_node ON alert (${documentText(['node'])}, key);
   UPDATE node SET doc = json_set(doc, '$.provisioning', json('null')) WHERE json_valid(doc);
   -- Overlays: how services run, files with values of the node, health checks.
   UPDATE vcluster SET doc = json_insert(doc, '$.overlay.terms', json('[]'),
     '$.overlay.templates', json('[]'), '$.overlay.checks', json('[]')) WHERE json_valid(doc);
   -- By which name a token was handed out is not known of those before.
   UPDATE token SET doc = json_set(doc, '$.serverName', json('null')) WHERE json_valid(doc);
   -- How the outputs of a node stand on its host.
   ALTER TABLE observation ADD COLUMN outputs TEXT;`,

  // 0.5.0
  `-- New fields of rows get their value here. A row that cannot be read stays as it is.
   UPDATE node SET doc = json_set(doc, '$.scrapeAddress', json('null')) WHERE json_valid(doc);
   UPDATE profile SET doc = json_set(doc, '$.deletedAtMs', json('null')) WHERE json_valid(doc);
   UPDATE operator_key SET doc = json_set(doc, '$.expiresAtMs', json('null')) WHERE json_valid(doc);`,

  // 0.6.0
  `-- Signed tasks (docs/decisions/tasks.md).
   ${documents('task_signers', '')}
   -- The number of the verifiers that the node has reported.
   ALTER TABLE observation ADD COLUMN task_verifiers INTEGER;
   -- Workers, and who vouches for them.
   ${documents('worker', ', issuer TEXT NOT NULL, until_ms INTEGER')}
   CREATE INDEX worker_by_issuer ON worker (issuer, key);
   CREATE INDEX worker_by_end ON worker (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('worker_issuer', ', live_claims TEXT UNIQUE')}
   ${documents(
     'task',
     `, node TEXT NOT NULL, type TEXT NOT NULL, rollout TEXT, sort_key TEXT NOT NULL, state TEXT NOT NULL,
      due TEXT, waits_for TEXT, queuer TEXT, lane TEXT, until_ms INTEGER`,
   )}
   CREATE INDEX task_by_age ON task (sort_key);
   CREATE INDEX task_by_node ON task (node, sort_key);
   CREATE INDEX task_of_node ON task (node, state, sort_key);
   CREATE INDEX task_by_state ON task (state, sort_key);
   CREATE INDEX task_by_type ON task (type, sort_key);
   CREATE INDEX task_by_rollout ON task (rollout, sort_key) WHERE rollout IS NOT NULL;
   -- What a step of a rollout counts, whatever its length.
   CREATE INDEX task_of_rollout ON task (rollout, state, sort_key) WHERE rollout IS NOT NULL;
   CREATE INDEX task_by_due ON task (state, due) WHERE due IS NOT NULL;
   CREATE INDEX task_waiting ON task (waits_for, sort_key) WHERE waits_for IS NOT NULL;
   CREATE INDEX task_in_lane ON task (node, lane, sort_key) WHERE lane IS NOT NULL;
   CREATE INDEX task_by_queuer ON task (queuer, sort_key) WHERE queuer IS NOT NULL;
   CREATE INDEX task_by_end ON task (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('task_line', '')}
   ${documents('task_rollout', ', open TEXT, until_ms INTEGER')}
   CREATE INDEX task_rollout_open ON task_rollout (open) WHERE open IS NOT NULL;
   CREATE INDEX task_rollout_by_end ON task_rollout (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('rollout_nodes', ', until_ms INTEGER NOT NULL')}
   CREATE INDEX rollout_nodes_by_end ON rollout_nodes (until_ms);
   ${documents('run_tally', '')}
   -- Which tasks may be queued: none, until operators say so.
   UPDATE domain SET doc = json_set(doc, '$.tasks', json('{"run":false,"reboot":false,"approveRunAbove":null}')) WHERE json_valid(doc);
   UPDATE vcluster SET doc = json_set(doc, '$.tasks', json('{"types":[]}')) WHERE json_valid(doc);`,

  // 0.7.0
  `-- Outside issuers (docs/decisions/issuers.md). The key of an order is its id; ORDER is a word of SQL.
   ${documents('outside_issuer', '')}
   ${documents('signing_order', ', issuer TEXT NOT NULL, leaf TEXT NOT NULL, state TEXT NOT NULL, open_for TEXT UNIQUE, orphaned INTEGER NOT NULL, until_ms INTEGER, lasting TEXT')}
   CREATE INDEX signing_order_by_state ON signing_order (state, key);
   CREATE INDEX signing_order_leaf ON signing_order (issuer, leaf, key);
   CREATE INDEX signing_order_orphaned ON signing_order (issuer, orphaned, key) WHERE orphaned = 1;
   CREATE INDEX signing_order_by_end ON signing_order (until_ms) WHERE until_ms IS NOT NULL;
   CREATE INDEX signing_order_lasting ON signing_order (issuer, lasting) WHERE lasting IS NOT NULL;
   CREATE INDEX signing_order_by_node ON signing_order (${documentText(['subject', 'node'])}, key);
   ${documents('issuer_revocation', ', issuer TEXT NOT NULL, due TEXT, receipt TEXT, until_ms INTEGER')}
   CREATE INDEX issuer_revocation_by_issuer ON issuer_revocation (issuer, key);
   CREATE INDEX issuer_revocation_due ON issuer_revocation (issuer, due) WHERE due IS NOT NULL;
   CREATE INDEX issuer_revocation_of_receipt ON issuer_revocation (receipt, key) WHERE receipt IS NOT NULL;
   CREATE INDEX issuer_revocation_by_end ON issuer_revocation (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('issuer_migration', '')}
   -- The revision of the roots of issuers that the agent of the node has confirmed.
   ALTER TABLE observation ADD COLUMN issuer_roots INTEGER;
   -- Who signs: the built-in authority, until operators say otherwise.
   UPDATE profile SET doc = json_set(doc, '$.certificate.issuer', 'built-in', '$.certificate.minLifetimeMs', json('null'))
     WHERE json_valid(doc);`,
]

export const newestSchema = migrations.length

/** Looks without touching: a file that is not ours is left as it was found. */
export const checkSchema = (database: Database): void => {
  const known = pragma(database, 'application_id')
  const schema = schemaVersion(database)
  const tables = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get()?.['count']
  if (known !== applicationId && !(known === 0 && tables === 0)) throw notAStore('another program wrote it')
  if (schema > newestSchema)
    throw new StoreRefused(
      'SCHEMA_TOO_NEW',
      `the store has schema ${schema}; this release of Muster knows schemas up to ${newestSchema}`,
      'Run the newer release that wrote it, or restore the copy made before the upgrade',
    )
}

/** How many steps were taken; 0: the file is new. */
export const schemaVersion = (database: Database): number => pragma(database, 'user_version')

/** What a step does besides its statements, in the same transaction; by the schema that it makes. */
const alsoDone: Readonly<Record<number, (database: Database) => void>> = {
  // Every name that the plane has served is its own.
  7(database) {
    const entries = database.prepare(askServed).all()
    const [now] = database.prepare("SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS ms").all()
    const insert = database.prepare('INSERT INTO name_claim (key, version, doc, node, holder) VALUES (?, 1, ?, ?, ?)')
    const claims = claimsOnServed(
      entries.map((row) => String(row['bytes'])),
      Number(now?.['ms']),
    )
    for (const { key, doc, columns } of claims) insert.run(key, doc, ...columns)
  },
}

/** By way of the chains: there may be millions of entries in closed ones, and their index begins with the chain. */
const askServed = `SELECT bytes FROM journal WHERE type = '${servedEntryType}'
  UNION ALL SELECT bytes FROM closed_chain CROSS JOIN closed_entry USING (chain) WHERE type = '${servedEntryType}'`

/** `upTo`: for what an earlier release has written, until it is brought up to date. */
export const migrate = (database: Database, upTo = newestSchema): void => {
  for (let step = schemaVersion(database); step < upTo; step++) {
    transact(database, () => {
      database.exec(migrations[step] as string)
      alsoDone[step + 1]?.(database)
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${step + 1}`)
    })
  }
}

const pragma = (database: Database, name: 'application_id' | 'user_version'): number =>
  Number(database.prepare(`PRAGMA ${name}`).get()?.[name])
