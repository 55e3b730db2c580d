// The schema on PostgreSQL, as the steps that made it; the same documents and columns as the embedded store's. Text is
// compared by its bytes ("C"), so that both stores list in one order. A step that has shipped is never edited.

const text = 'TEXT COLLATE "C"'

const documents = (table: string, columns: string): string =>
  `CREATE TABLE ${table} (key ${text} PRIMARY KEY, version BIGINT NOT NULL, doc TEXT NOT NULL${columns});`

/**
 * The text at a place of a document; null where the document cannot be read, so that a damaged row is in the way of no index and
 * of no step. An index is used where its expression is the very same.
 */
export const documentText = (path: readonly (string | number)[]): string => `document_text(doc, '{${path.join(',')}}')`

export const documentReader = `CREATE OR REPLACE FUNCTION document_text(doc TEXT, path TEXT[]) RETURNS TEXT
  LANGUAGE plpgsql IMMUTABLE STRICT AS $$
  BEGIN
    RETURN doc::json #>> path;
  EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
  END $$;`

export type LookupIndex = { readonly name: string; readonly table: string; readonly path: readonly (string | number)[] }

/** Since 0.4.0, on tables that were there before. */
export const lookupIndexes: readonly LookupIndex[] = [
  { name: 'key_claim_by_holder', table: 'key_claim', path: ['holders', 0, 'node'] },
  { name: 'wireguard_key_by_node', table: 'wireguard_key', path: ['node'] },
  { name: 'overlay_address_by_node', table: 'overlay_address', path: ['node'] },
  { name: 'alert_by_node', table: 'alert', path: ['node'] },
]

export const createIndex = ({ name, table, path }: LookupIndex, how: string): string =>
  `CREATE ${how} ${name} ON ${table} (${documentText(path)}, key)`

/** One of each schema in schema-since.ts. */
export const migrations: readonly string[] = [
  `${documents('node', `, membership ${text} NOT NULL, profile ${text} NOT NULL`)}
   CREATE INDEX node_by_membership ON node (membership, key);
   ${documents('token', `, id ${text} NOT NULL UNIQUE, node ${text}, made BIGINT GENERATED ALWAYS AS IDENTITY`)}
   CREATE INDEX token_by_node ON token (node, made);
   CREATE INDEX token_by_age ON token (made);
   ${documents('certificate', `, node ${text}, not_after_ms BIGINT NOT NULL`)}
   CREATE INDEX certificate_by_end ON certificate (not_after_ms);
   ${documents('denial', ', until_ms BIGINT NOT NULL')}
   CREATE INDEX denial_by_end ON denial (until_ms);
   ${documents('key_ban', '')}
   ${documents('profile', '')}
   ${documents('domain', '')}
   -- Deferrable: checked behind a statement, so that of many rows one may take what another gives up.
   ${documents('operator_key', `, id ${text} NOT NULL UNIQUE, live_name ${text} UNIQUE DEFERRABLE`)}
   ${documents('issuer', '')}
   ${documents('alert', `, id ${text} NOT NULL UNIQUE DEFERRABLE, unresolved SMALLINT NOT NULL`)}
   CREATE INDEX alert_unresolved ON alert (unresolved, id);

   CREATE TABLE hardware (value ${text} PRIMARY KEY, node ${text} NOT NULL);
   CREATE INDEX hardware_by_node ON hardware (node);

   -- A chain is written by one replica at a time, so that writers never wait for each other. A replica that starts takes
   -- over one that nobody with a lease writes, or begins a new one. sequence and hash are those of its newest entry.
   CREATE TABLE chain (chain ${text} PRIMARY KEY, domain TEXT NOT NULL, base_sequence BIGINT NOT NULL,
     base_hash BYTEA NOT NULL, base_signature BYTEA NOT NULL, base_key_id TEXT NOT NULL, sequence BIGINT NOT NULL,
     hash BYTEA NOT NULL, writer BIGINT, settled BIGINT NOT NULL DEFAULT 0);
   -- touched: the rows a commit wrote, as JSON [[kind, key], ...], on its first entry; for replicas, not for the chain.
   CREATE TABLE journal (chain ${text} NOT NULL, sequence BIGINT NOT NULL, operation ${text} NOT NULL UNIQUE,
     bytes TEXT NOT NULL, hash BYTEA NOT NULL, signature BYTEA, key_id TEXT, node ${text}, type ${text} NOT NULL,
     touched TEXT, PRIMARY KEY (chain, sequence));
   CREATE INDEX journal_by_node ON journal (node, chain, sequence) WHERE node IS NOT NULL;
   CREATE INDEX journal_by_type ON journal (type, chain, sequence);

   CREATE TABLE replica (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL,
     version TEXT NOT NULL, started_at TIMESTAMPTZ NOT NULL, expires_at TIMESTAMPTZ NOT NULL);
   -- number: the fence. Whoever leads holds it together with its own lease.
   CREATE TABLE leadership (id SMALLINT PRIMARY KEY CHECK (id = 1), number BIGINT NOT NULL, replica BIGINT);
   INSERT INTO leadership VALUES (1, 0, NULL);
   CREATE TABLE holder (node ${text} PRIMARY KEY, replica BIGINT NOT NULL, session BIGINT NOT NULL, instance TEXT);
   CREATE INDEX holder_by_replica ON holder (replica);

   CREATE TABLE observation (node ${text} PRIMARY KEY, last_seen_ms BIGINT, agent_version TEXT, source TEXT,
     config_revision BIGINT, report TEXT, rehearsed_at_ms BIGINT, evidence TEXT);
   CREATE TABLE webhook_progress (id SMALLINT PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL);
   CREATE TABLE sealed_key (name ${text} PRIMARY KEY, sealed TEXT NOT NULL);`,

  // The fleet: vClusters, allocations, WireGuard, receipts, plans, other domains.
  `ALTER TABLE node ADD COLUMN vcluster ${text};
   CREATE INDEX node_by_vcluster ON node (vcluster, key) WHERE vcluster IS NOT NULL;
   UPDATE node SET vcluster = doc::jsonb ->> 'assignment', doc = (doc::jsonb || '{"allocations":0,"wireguard":null,
     "machine":{"tags":[],"firmware":null,"readiness":null,"slots":[]}}'::jsonb)::text;
   UPDATE profile SET doc = (doc::jsonb || '{"wireguard":{"mode":"off","listenPort":51820,"mtu":1420}}'::jsonb)::text;
   UPDATE domain SET doc = (doc::jsonb || '{"issuance":{"kind":"open"},"overlayPrefix":null,"maintenance":{"policy":
     {"enforcementMode":"observe","execWhitelist":[],"shellWhitelist":[],"regulated":false},"timeSync":null}}'::jsonb)::text;
   UPDATE denial SET doc = (doc::jsonb || '{"atMs":0,"reason":"unspecified"}'::jsonb)::text;
   UPDATE issuer SET doc = (doc::jsonb || '{"compromisedAtMs":null}'::jsonb)::text;
   ALTER TABLE observation ADD COLUMN capabilities TEXT, ADD COLUMN overlay TEXT;
   CREATE INDEX certificate_by_node ON certificate (node, key) WHERE node IS NOT NULL;
   ${documents('vcluster', '')}
   ${documents('allocation', `, node ${text} NOT NULL, vcluster ${text} NOT NULL, state TEXT NOT NULL, until_ms BIGINT`)}
   CREATE INDEX allocation_by_node ON allocation (node, state, key);
   CREATE INDEX allocation_by_vcluster ON allocation (vcluster, state, key);
   CREATE INDEX allocation_by_end ON allocation (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('wireguard_key', '')}
   ${documents('overlay_address', '')}
   ${documents('receipt', `, node ${text} NOT NULL, unsettled SMALLINT NOT NULL`)}
   CREATE INDEX receipt_by_node ON receipt (node, key);
   CREATE INDEX receipt_unsettled ON receipt (key) WHERE unsettled = 1;
   ${documents('plan', ', until_ms BIGINT NOT NULL')}
   ${documents('peer_domain', '')}
   ${documents('claim', `, hardware ${text} NOT NULL, domain ${text} NOT NULL, until_ms BIGINT NOT NULL`)}
   CREATE INDEX claim_by_hardware ON claim (hardware, key);
   CREATE INDEX claim_by_domain ON claim (domain, key);
   ${documents('hardware_profile', '')}`,

  // 0.2.1
  `-- One source gets a part of the budget for failing callers. The default of before gave it all of it.
   -- With new versions: a change that waits for this step was decided on the rows of before, and has to lose its race.
   UPDATE domain SET version = version + 1, doc = (doc::jsonb || '{"strangersPerMinutePerSource":25}'::jsonb)::text
     WHERE doc::jsonb ->> 'strangersPerMinutePerSource' = '100' AND doc::jsonb ->> 'strangersPerMinute' = '100';
   -- Profiles: the silence that admits another caller.
   UPDATE profile SET version = version + 1, doc = (doc::jsonb || '{"probeSilenceMs":30000}'::jsonb)::text;
   -- Claims on public keys: for every key that a node's row names. Nodes that share one are all in its claim.
   ${documents('key_claim', ', shared SMALLINT NOT NULL')}
   CREATE INDEX key_claim_shared ON key_claim (shared, key) WHERE shared = 1;
   INSERT INTO key_claim (key, version, doc, shared)
     SELECT spki, 1, json_build_object('spki', spki, 'holders',
       json_agg(json_build_object('node', node, 'use', use, 'sinceMs', since) ORDER BY node, use))::text,
       CASE WHEN count(DISTINCT node) > 1 THEN 1 ELSE 0 END
     FROM (SELECT spki, node, use, min(since::bigint) AS since FROM (
       ${['current', 'pending', 'retired,slot']
         .map(
           (slot) => `SELECT doc::jsonb #>> '{membership,slots,${slot},spki}' AS spki, key AS node, 'tls' AS use,
           doc::jsonb #>> '{membership,slots,${slot},issuedAtMs}' AS since FROM node UNION ALL `,
         )
         .join('')}
       SELECT doc::jsonb #>> '{recovery,credential,spki}', key, 'recovery',
         doc::jsonb #>> '{recovery,credential,registeredAtMs}' FROM node) AS held
       WHERE spki IS NOT NULL GROUP BY spki, node, use) AS holder
     GROUP BY spki;
   -- How long planes have led on this store, in milliseconds of monotonic time (lived-time.ts).
   CREATE TABLE lived (id SMALLINT PRIMARY KEY CHECK (id = 1), ms BIGINT NOT NULL);
   -- Of a domain of before: as its journal shows it, in a sample (see the embedded store's step).
   INSERT INTO lived (id, ms) SELECT 1, coalesce(sum(least(ms, 3600000)) FILTER (WHERE ms IS NOT NULL), 0) FROM (
     SELECT at_ms - lag(at_ms) OVER (ORDER BY at_ms) AS ms FROM (
       SELECT substring(journal.bytes FROM '"atMs":([0-9]{1,15}),')::bigint AS at_ms
       FROM (SELECT greatest(1, sum(sequence - base_sequence)::bigint / 50000) AS step FROM chain) AS pace
       CROSS JOIN chain
       CROSS JOIN LATERAL generate_series(chain.base_sequence + 1, chain.sequence, pace.step) AS place (sequence)
       JOIN journal ON journal.chain = chain.chain AND journal.sequence = place.sequence) AS written
     WHERE at_ms IS NOT NULL) AS gap;
   -- A plane that ran on schema 2 until now (schema-gate.ts) has certified keys that no row of a node names any more: claimed by
   -- the certificates on record. Those that ended more than a week ago are left out, because there may be millions of them.
   INSERT INTO key_claim (key, version, doc, shared)
     SELECT spki, 1, json_build_object('spki', spki, 'holders',
       json_agg(json_build_object('node', node, 'use', use, 'sinceMs', since) ORDER BY node, use))::text,
       CASE WHEN count(DISTINCT node) > 1 THEN 1 ELSE 0 END
     FROM (SELECT spki, node, use, min(since) AS since FROM (
       SELECT doc::json ->> 'spki' AS spki, node, 'tls' AS use, (doc::json ->> 'issuedAtMs')::bigint AS since
         FROM certificate
         WHERE node IS NOT NULL AND not_after_ms > (extract(epoch FROM now() - interval '7 days') * 1000)::bigint
       UNION ALL
       SELECT key, holder ->> 'node', holder ->> 'use', (holder ->> 'sinceMs')::bigint
         FROM key_claim, json_array_elements(doc::json -> 'holders') AS holder) AS held
       WHERE spki IS NOT NULL GROUP BY spki, node, use) AS holder
     GROUP BY spki
     ON CONFLICT (key) DO UPDATE SET doc = excluded.doc, shared = excluded.shared;
   -- How far the clock of a replica is from the database's, above 0 ahead; null: a release that does not say. Last: until the
   -- commit no lease is renewed.
   ALTER TABLE replica ADD COLUMN clock_offset_ms BIGINT;`,

  // 0.4.0
  `-- No document is written anew, because there may be millions: what a row of before lacks is read as older-rows.ts has it.
   ${documents('program', `, node ${text} NOT NULL, until_ms BIGINT NOT NULL`)}
   CREATE INDEX program_by_node ON program (node, key);
   CREATE INDEX program_by_end ON program (until_ms);
   ${documents('name_claim', `, node ${text}, holder ${text} NOT NULL`)}
   CREATE INDEX name_claim_by_node ON name_claim (node, key) WHERE node IS NOT NULL;
   CREATE INDEX name_claim_by_holder ON name_claim (holder, key);
   ${documents('purged_node', '')}
   -- There already, but on a new database and on one from before 0.3 (build-indexes.ts).
   ${documentReader}
   ${lookupIndexes.map((index) => `${createIndex(index, 'INDEX IF NOT EXISTS')};`).join('\n   ')}
   -- How the outputs of a node stand on its host.
   ALTER TABLE observation ADD COLUMN outputs TEXT;`,

  // 0.5.0
  `-- No document is written anew: what a row of before lacks is read as older-rows.ts has it.`,

  // 0.6.0
  `-- Signed tasks (docs/decisions/tasks.md). What a row of before lacks is read as older-rows.ts has it.
   ${documents('task_signers', '')}
   -- The number of the verifiers that the node has reported.
   ALTER TABLE observation ADD COLUMN task_verifiers BIGINT;
   -- Workers, and who vouches for them.
   ${documents('worker', `, issuer ${text} NOT NULL, until_ms BIGINT`)}
   CREATE INDEX worker_by_issuer ON worker (issuer, key);
   CREATE INDEX worker_by_end ON worker (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('worker_issuer', `, live_claims ${text} UNIQUE DEFERRABLE`)}
   ${documents(
     'task',
     `, node ${text} NOT NULL, type ${text} NOT NULL, rollout ${text}, sort_key ${text} NOT NULL, state ${text} NOT NULL, due ${text}, waits_for ${text}, queuer ${text}, lane ${text}, until_ms BIGINT`,
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
   ${documents('task_rollout', `, open ${text}, until_ms BIGINT`)}
   CREATE INDEX task_rollout_open ON task_rollout (open) WHERE open IS NOT NULL;
   CREATE INDEX task_rollout_by_end ON task_rollout (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('rollout_nodes', ', until_ms BIGINT NOT NULL')}
   CREATE INDEX rollout_nodes_by_end ON rollout_nodes (until_ms);
   ${documents('run_tally', '')}`,

  // 0.7.0
  `-- Outside issuers (docs/decisions/issuers.md). What a row of before lacks is read as older-rows.ts has it.
   ${documents('outside_issuer', '')}
   ${documents('signing_order', `, issuer ${text} NOT NULL, leaf ${text} NOT NULL, state ${text} NOT NULL, open_for ${text} UNIQUE DEFERRABLE, orphaned SMALLINT NOT NULL, until_ms BIGINT, lasting ${text}`)}
   CREATE INDEX signing_order_by_state ON signing_order (state, key);
   CREATE INDEX signing_order_leaf ON signing_order (issuer, leaf, key);
   CREATE INDEX signing_order_orphaned ON signing_order (issuer, orphaned, key) WHERE orphaned = 1;
   CREATE INDEX signing_order_by_end ON signing_order (until_ms) WHERE until_ms IS NOT NULL;
   CREATE INDEX signing_order_lasting ON signing_order (issuer, lasting) WHERE lasting IS NOT NULL;
   CREATE INDEX signing_order_by_node ON signing_order (${documentText(['subject', 'node'])}, key);
   ${documents('issuer_revocation', `, issuer ${text} NOT NULL, due ${text}, receipt ${text}, until_ms BIGINT`)}
   CREATE INDEX issuer_revocation_by_issuer ON issuer_revocation (issuer, key);
   CREATE INDEX issuer_revocation_due ON issuer_revocation (issuer, due) WHERE due IS NOT NULL;
   CREATE INDEX issuer_revocation_of_receipt ON issuer_revocation (receipt, key) WHERE receipt IS NOT NULL;
   CREATE INDEX issuer_revocation_by_end ON issuer_revocation (until_ms) WHERE until_ms IS NOT NULL;
   ${documents('issuer_migration', '')}
   -- The revision of the roots of issuers that the agent of the node has confirmed.
   ALTER TABLE observation ADD COLUMN issuer_roots BIGINT;`,
]
