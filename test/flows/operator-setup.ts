// An operator listener on a real store, a real authority and real sockets, with a key of every role.

import * as path from 'node:path'
import type { TestContext } from 'node:test'
import type { NodeId } from '#domain/core/node.ts'
import { roles, type Role } from '#domain/core/principal.ts'
import { openKeyBook, type KeyBook } from '#plane/authn/operator-key-book.ts'
import type { KeySeal } from '#domain/operators/operator-keys.ts'
import { openKeySeal } from '#plane/keys/operator-key-seal.ts'
import { openFeed, type Feed } from '#plane/core/feed.ts'
import { recoverabilityCounts } from '#plane/core/count-recoverable.ts'
import { createOperatorKey } from '#plane/operators/change-operator-keys.ts'
import { openCutOffFiles } from '#plane/cut-off/cut-off-files.ts'
import { openPendingCutOffs } from '#plane/cut-off/pending-cut-offs.ts'
import type { OpenChannels, OpenSession } from '#plane/core/open-channels.ts'
import type { Authority } from '#plane/authority/authority.ts'
import { sealingKeyOf } from '#plane/keys/seal.ts'
import { adoptOverlays } from '#plane/fleet/adopt-overlays.ts'
import { openEndedRights } from '#plane/seals/ended-rights.ts'
import { openRowSeal } from '#plane/seals/row-seal.ts'
import { sealedStore } from '#plane/seals/sealed-store.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { openServedNames } from '#plane/authority/served-names.ts'
import { openTaskSigners, type TaskSignersHere } from '#plane/tasks/task-signers.ts'
import { openIssuance } from '#plane/issuers/open-issuance.ts'
import { openIssuers, type Issuers } from '#plane/issuers/open-issuers.ts'
import type { Core } from '#plane/core/core.ts'
import { openKeySets } from '#plane/workers/key-sets.ts'
import { openWorkerIssuers } from '#plane/workers/worker-issuers.ts'
import { openPlaneNames, type PlaneNames } from '#plane/settings/plane-names.ts'
import { openAgentFiles } from '#plane/enrollment/agent-files.ts'
import { openReceipts, type Receipts } from '#plane/revocation/receipts.ts'
import type { OperatorListener } from '#plane/http/operator-listener.ts'
import { openUnresolvedAlerts, type UnresolvedAlerts } from '#plane/alerts/reconcile-alerts.ts'
import { openJournalWatch } from '#plane/journal/journal-watch.ts'
import { openMetrics } from '#plane/metrics/open-metrics.ts'
import { openOperatorServer } from '#plane/boot/operator-server.ts'
import { silentLog } from '#platform/log.ts'
import { systemRandom, type Random } from '#platform/random.ts'
import { confirmingPeers, type ConfirmingPeers } from '../fakes/confirming-peers.ts'
import { settingsNow } from '../fakes/settings-now.ts'
import { manualTimers, type ManualTimers } from '../fakes/manual-timers.ts'
import { scriptedIssuers, type ScriptedIssuers } from '../fakes/scripted-issuers.ts'
import { noneTurnedAway } from '../fakes/wide-limits.ts'
import { cleanup } from '../process/cleanup.ts'
import { operatorCall, type Reply } from '../process/operator-call.ts'
import { operator, setUp, type Setup } from './authority-setup.ts'

export type OperatorSetup = Setup & {
  readonly listener: OperatorListener
  readonly authority: Authority
  readonly feed: Feed
  readonly random: Random
  readonly timers: ManualTimers
  readonly keys: Readonly<Record<Role, string>>
  /** Channels that pretend to be open; as the real ones do, they end when the feed tells of a denial. */
  readonly sessions: Map<NodeId, OpenSession[]>
  readonly peers: ConfirmingPeers
  readonly receipts: Receipts
  readonly planeNames: PlaneNames
  readonly taskSigners: TaskSignersHere
  readonly scripted: ScriptedIssuers
  readonly issuers: Issuers
  readonly alerts: UnresolvedAlerts
  readonly core: Core
  /** What keeps the plane from being ready. */
  readonly unready: string[]
  readonly keyBook: KeyBook
  readonly keySeal: KeySeal
  /** Without MACs: what somebody writes who has the database alone. */
  readonly bare: Store
  /** The rows that were met without a good MAC. */
  readonly forged: string[]
  /** Over the Unix socket, with the key of a role. */
  call(role: Role | null, method: string, path: string, body?: object): Promise<Reply>
}

export const setUpOperatorServer = async (t: TestContext): Promise<OperatorSetup> => {
  const base = await setUp(t)
  const { clock, folder } = base
  const feed = openFeed()
  const sealing = sealingKeyOf(Buffer.alloc(32, 5), systemRandom)
  const keySeal = openKeySeal(sealing, () => 'test')
  const forged: string[] = []
  const store = sealedStore(base.store, {
    ...{ keySeal, rowSeal: openRowSeal(sealing, () => 'test') },
    ended: await openEndedRights({ store: base.store, feed, clock }),
    onForged: (kind, key) => void forged.push(`${kind} ${key}`),
  })
  const timers = manualTimers(clock)
  const authority = await base.open()
  await authority.maintain(90 * 24 * 3_600_000)
  const sessions = new Map<NodeId, OpenSession[]>()
  /** How many channels the withdrawal with a receipt has cut. */
  const cut = new Map<string, number>()
  feed.subscribe('channels', ({ writes }) => {
    const before = channels.count()
    for (const write of writes)
      if (write.put === 'denial' && write.value.kind === 'epoch') sessions.delete(write.value.node)
    for (const write of writes)
      if (write.put === 'receipt' && !cut.has(write.value.id)) cut.set(write.value.id, before - channels.count())
  })
  const channels: OpenChannels = {
    openSessions: (node) => sessions.get(node) ?? [],
    everySession: async (node) => sessions.get(node) ?? [],
    isConnected: async (node) => sessions.has(node),
    cutOn: async (_replica, receipt) => cut.get(receipt) ?? 0,
    count: () => [...sessions.values()].flat().length,
    pauseWhile: (_node, run) => run(),
  }
  const peers = confirmingPeers()
  const core = { store, feed, clock, random: systemRandom, timers, log: silentLog }
  const receipts = openReceipts(core, { channels, peers })
  const unready: string[] = []
  const alerts = await openUnresolvedAlerts(store, feed)
  const keyBook = await openKeyBook(core, keySeal, alerts)
  const journalWatch = openJournalWatch(core, { alerts, keyBook, domainName: () => 'test', loopLoad: () => 0 })
  const metrics = openMetrics(core, { domain: 'test', nodeMetrics: true })
  metrics.measure({
    channels,
    authority,
    alerts,
    journalWatch,
    admission: { waiting: () => 0 },
    alerting: { waitingDeliveries: () => 0 },
    issuers: () => [],
    notReady: () => unready,
  })
  const urls = () => ({ node: 'https://plane.example:8443', recovery: 'https://plane.example:8442', marked: true })
  const names = await openServedNames(core, {
    names: { dns: ['plane.example'], ip: [] },
    host: 'plane.example',
    addresses: [],
  })
  await names.look()
  const planeNames = openPlaneNames(core, { names, urls })
  const settings = await settingsNow(store, feed)
  const custody = await base.custody()
  const beforeFirst = (): Promise<void> => adoptOverlays(core)
  const taskSigners = await openTaskSigners(core, { custody, settings, beforeFirst })
  const scripted = scriptedIssuers()
  const issuers = await openIssuers(core, { custody, kinds: scripted.kinds })
  const issuance = await openIssuance(core, { own: authority, door: issuers.outside, known: issuers.known })
  let calls = 0
  const listener = await openOperatorServer(
    core,
    {
      called: {
        authority,
        agentFiles: openAgentFiles([], silentLog),
        programs: { roots: () => [] },
        programLists: { lists: async () => ({ roots: [], lists: [] }) },
        workerIssuers: await openWorkerIssuers(core),
        keySets: openKeySets(core),
        issuers,
        issuance,
        channels,
        peers,
        receipts,
        cutOffs: openPendingCutOffs(
          core,
          {
            files: openCutOffFiles(folder, silentLog),
            denyList: { reload: async () => {} },
            epochsHere: () => [],
          },
          new Map(),
        ),
        // No issuer here has its key in a file of this setup.
        revocationLists: { list: async () => null },
        keySeal,
        keyBook,
        journalWatch,
        urls,
        planeNames,
        taskSigners,
        recovery: { roots: () => ['recovery root'], statementKeys: () => ['statement key'] },
        recoverability: recoverabilityCounts(store, clock, timers),
      },
      metrics,
      alerts,
      version: '0.0.0',
      correlation: () => `call-${calls++}`,
      balancers: null,
      turnedAway: noneTurnedAway,
      unready: () => unready,
      clockWarnings: () => [],
      settings,
    },
    {
      socket: path.join(folder, 'run', 'operator.sock'),
      http: { host: '127.0.0.1', port: 0, shared: false },
      tls: null,
    },
  )
  cleanup(t, () => listener.stop(0))
  const keys = {} as Record<Role, string>
  // No key made these: what an operator's key has made does not approve what that operator plans.
  const onHost = { ...operator, actor: 'host:root' }
  for (const role of roles) {
    const made = await createOperatorKey(core, keySeal, { name: `the-${role}`, role, expiresAtMs: null }, onHost)
    if (made.kind === 'refused') throw new Error(made.code)
    keys[role] = made.secret
  }
  const call: OperatorSetup['call'] = (role, method, at, body) =>
    operatorCall(listener.socket ?? '', role === null ? null : keys[role], method, at, body)
  return {
    ...base,
    store,
    bare: base.store,
    forged,
    listener,
    authority,
    feed,
    random: systemRandom,
    timers,
    keys,
    sessions,
    peers,
    receipts,
    planeNames,
    taskSigners,
    scripted,
    issuers,
    alerts,
    core,
    unready,
    keyBook,
    keySeal,
    call,
  }
}
