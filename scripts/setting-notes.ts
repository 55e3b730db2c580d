// What the settings of profiles, of the domain and of vClusters mean, and when to change them: for docs/SETTINGS.md. What each takes is
// said by the rules of the domain; a key of theirs without a note here fails a test.

export type Note = { readonly meaning: string; readonly change: string }

export const profileNotes: Readonly<Record<string, Note>> = {
  description: { meaning: 'A sentence for operators.', change: 'As you like.' },
  'join.allOf': {
    meaning:
      'How a machine proves itself when it enrolls; each of these has to succeed. `token`: an enrollment token. `hardware`: the MAC addresses and BMC serial of a registered node. `tpm` has no effect yet: nothing can join under a profile that asks for it.',
    change: 'To `hardware` for diskless machines in a machine room that is trusted. MAC addresses can be copied.',
  },
  'join.tokenScope': {
    meaning:
      '`node`: a token names the node it is for. `domain`: a token admits any one machine, which is registered by using it.',
    change: 'To `domain` where machines are made before they have a name, as by an autoscaler.',
  },
  'join.tokenTtlMs': {
    meaning: 'How long an enrollment token can be used.',
    change: 'Longer where provisioning takes longer. A stolen token is good for as long.',
  },
  'certificate.lifetimeMs': {
    meaning: "Lifetime of a node's certificate, counted from its issue.",
    change:
      'Longer where nodes may be without the plane for longer than what `renewTo` leaves of it; shorter where those who verify it read no revocation lists. Nodes take a change up at their next renewal.',
  },
  'certificate.issuer': {
    meaning:
      'Who signs the certificates of nodes: `built-in`, the authority of the domain, or an outside issuer by its name ([ISSUERS.md](ISSUERS.md)). Shown only where it is an outside one.',
    change:
      'To the name of a step-ca or a Vault that has passed `muster issuer test`. Nodes take it up at their next renewal.',
  },
  'certificate.minLifetimeMs': {
    meaning:
      'A certificate of an outside issuer that lives shorter is not taken. Null: half of `lifetimeMs`. Shown only where it is set.',
    change: 'Lower where the issuer gives less than was asked for, and renewals that come as often can be served.',
  },
  'certificate.renewFrom': {
    meaning:
      'The fraction of the lifetime from which on a node renews. The moment is chosen at random between this and `renewTo`.',
    change: 'Together with `renewTo`: the further apart they are, the more evenly renewals are spread.',
  },
  'certificate.renewTo': {
    meaning:
      'The fraction of the lifetime by which a node renews. The rest of the lifetime is the outage of the plane that a certificate outlasts: a third of it with the default.',
    change: 'Earlier to outlast longer outages. It is never earlier than `renewFrom`.',
  },
  'certificate.keyTypes': {
    meaning: 'The types of keys that are certified. An agent makes one of a type that is allowed.',
    change: 'Where a policy forbids one, or those who verify the certificates know no Ed25519.',
  },
  'certificate.subject.cn': {
    meaning: 'The common name in certificates.',
    change: 'Where others read it. Nothing in Muster does.',
  },
  'certificate.subject.o': { meaning: 'The organisation in certificates.', change: 'Where others read it.' },
  'certificate.subject.ou': { meaning: 'The organisational unit in certificates.', change: 'Where others read it.' },
  'certificate.uriSan': {
    meaning: 'Whether certificates carry `spiffe://DOMAIN/node/ID`.',
    change: 'To `false` only where something in the way does not accept a subject alternative name.',
  },
  'certificate.aiaUrl': {
    meaning: "The URL of the issuer's certificate, written into certificates (AIA, CA issuers).",
    change: 'Where you publish it yourself. The listener for OCSP is named by `status_url` of the plane.',
  },
  'certificate.cdpUrl': {
    meaning: 'The URL of a revocation list, written into certificates (CDP).',
    change: 'Where you publish the list yourself, as `muster ca crl` prints it.',
  },
  keyStorage: {
    meaning:
      'Where nodes of this profile should keep their keys. `memory`: no key is written, and every start of the agent is a new enrollment. `tpm` has no effect yet.',
    change: 'To `memory` for machines without disks, together with `join.allOf=hardware`.',
  },
  onActiveConflict: {
    meaning:
      'What happens when another key asks for the identity of an active node. `prove`: refused, unless the caller proves the key of the current certificate or the recovery key, or brings a token made with `--replace`. `probe`: the live channel is asked; an answer means refused, silence for `probeSilenceMs` means admitted and alerted. `reject`: refused until the node is inactive.',
    change: '`probe` where machines lose their keys at every start, as diskless ones do.',
  },
  probeSilenceMs: {
    meaning:
      'With `onActiveConflict=probe`: how long the machine that holds the identity has to be silent before another is admitted.',
    change: 'Longer on networks that lose connections for longer than that.',
  },
  'comeback.by': {
    meaning:
      'How a node that was inactive comes back. `certificate`: with its certificate, as if nothing had happened. `join`: it has to enroll again. `approve`: operators approve it first (`muster node approve`).',
    change: 'To `approve` where a machine that was away may have been in other hands.',
  },
  'comeback.people': {
    meaning: 'How many operators have to approve a return or a recovery.',
    change: 'To 2 where no person alone may do that.',
  },
  'recovery.mode': {
    meaning:
      'Whether a node whose certificate no longer works may get a new one with its recovery key. `auto`: by itself, as often as `recovery.limit` allows. `approve`: after an approval. `deny`: never; it needs a token, its hardware or a repair bundle.',
    change: 'To `approve` where each recovery should be looked at; to `deny` where nodes join again anyway.',
  },
  'recovery.limit': {
    meaning: 'How many recoveries a node has within `recovery.windowMs`. Further ones wait for an approval.',
    change: 'Higher where machines are often off for longer than their certificates last.',
  },
  'recovery.windowMs': { meaning: 'The time over which recoveries are counted.', change: 'Seldom.' },
  'recovery.rehearseEveryMs': {
    meaning: 'How often a healthy agent rehearses its recovery, without changing anything.',
    change:
      'More often where you rely on it. A rehearsal is a challenge and a proof that the plane verifies; no certificate is signed.',
  },
  onDuplicate: {
    meaning:
      'What happens to two machines with one identity. `keep-live`: the one with the newer certificate or the live channel keeps it, and the other is refused; where none is live, as `fence`. `fence`: the node goes into quarantine, and neither machine is accepted until an operator decides.',
    change: 'To `fence` where an identity in the wrong hands is worse than an outage.',
  },
  'wireguard.mode': {
    meaning:
      'Whether nodes take part in the WireGuard network. `off`: a key that a node brings is ignored. `offered`: a node that brings one takes part. `required`: a node without one is refused.',
    change: 'Where nodes reach each other over networks that are not trusted.',
  },
  'wireguard.listenPort': { meaning: 'The UDP port of WireGuard on nodes.', change: 'Where a firewall wants another.' },
  'wireguard.mtu': {
    meaning: 'The MTU of the WireGuard interface.',
    change: 'Where the network below has a smaller one than 1500, or jumbo frames.',
  },
  outputs: {
    meaning:
      'Certificates for programs on the nodes: [PROGRAMS.md](PROGRAMS.md). An output of the vCluster replaces one of the same name here.',
    change: 'Where programs on every node of this profile need a certificate.',
  },
}

const policyNotes = (at: string): Readonly<Record<string, Note>> => ({
  [`${at}.enforcementMode`]: {
    meaning: '`observe`: what differs from the configuration is reported. `enforce`: the agent also puts it right.',
    change: 'To `enforce` once reports show no drift that is wanted.',
  },
  [`${at}.execWhitelist`]: { meaning: 'No effect yet: nothing reads it.', change: 'Not yet.' },
  [`${at}.shellWhitelist`]: { meaning: 'No effect yet: nothing reads it.', change: 'Not yet.' },
  [`${at}.regulated`]: { meaning: 'No effect yet: nothing reads it.', change: 'Not yet.' },
})

export const domainNotes: Readonly<Record<string, Note>> = {
  defaultProfile: {
    meaning: 'The profile of nodes and tokens for which none is named.',
    change: 'When most of your machines are of another kind.',
  },
  livenessGraceMs: {
    meaning: 'How long an active node may be without a channel before it is inactive.',
    change:
      'Longer where short outages of the network are usual; shorter to notice dead machines earlier, but with several planes not below 90 s.',
  },
  strangersPerMinute: {
    meaning:
      'How many failing requests of callers without a valid credential are answered in a minute, by all replicas together. Further ones get `RATE_LIMITED` and are counted in one journal entry a minute. Callers with a valid certificate that fail have a budget of the same size of their own.',
    change: 'Higher where many machines bring wrong tokens at once, as after a mistake in an image.',
  },
  strangersPerMinutePerSource: {
    meaning: 'The same for one source address (IPv6: /64).',
    change: 'Higher where many machines share an address (NAT).',
  },
  clockToleranceMs: {
    meaning:
      'How far clocks may be apart. A certificate that was issued later than this after now is refused, and a denial is kept this much longer than the certificate.',
    change: 'Seldom: repair the clocks.',
  },
  stuckEnrollmentMs: {
    meaning:
      'How long a node may be enrolled without using its certificate before it has the condition `stuck_enrollment`.',
    change: 'Longer where machines enroll long before they start to work.',
  },
  drainMs: {
    meaning:
      'How long a certificate still works after the first use of its successor. It has nothing to do with `node drain`.',
    change: 'Seldom.',
  },
  'maintenance.timeSync': {
    meaning: 'A service that keeps the time, run on nodes in no vCluster.',
    change: 'Where nothing else on those machines keeps the time.',
  },
  ...policyNotes('maintenance.policy'),
  overlayPrefix: {
    meaning: 'The IPv6 prefix of the WireGuard network. `none`: made from the name of the domain.',
    change: 'Before the first node takes part. It cannot be changed while a node has an address in it.',
  },
  programListMs: {
    meaning:
      'How long a revocation list for programs is good for, at least. A program that checks lists refuses everyone once its list has ended.',
    change: 'To the longest outage of the plane that programs have to survive.',
  },
  'tasks.run': {
    meaning: 'Whether tasks of type `run`, which start an executable that the host allows, may be queued at all.',
    change: 'To `true` where operators or workers run programs on nodes. A vCluster then allows them for its nodes.',
  },
  'tasks.reboot': {
    meaning: 'Whether tasks of type `reboot` may be queued at all.',
    change: 'To `true` where nodes are rebooted through Muster. A vCluster then allows it for its nodes.',
  },
  'tasks.approveRunAbove': {
    meaning:
      'More tasks `run` than this within an hour, in all, are planned by one operator and applied by another. `none`: one operator is enough.',
    change: 'To the number of nodes that one person may run a program on within an hour.',
  },
}

export const vclusterNotes: Readonly<Record<string, Note>> = {
  description: { meaning: 'A sentence for operators.', change: 'As you like.' },
  peering: {
    meaning:
      'Who is a WireGuard peer of its nodes. `mesh`: every node that is in no isolated vCluster. `isolated`: its own nodes only.',
    change: 'To `isolated` for tenants that must not reach each other.',
  },
  closed: { meaning: 'Whether it accepts no further nodes.', change: 'Before it is emptied or deleted.' },
  ...policyNotes('policy'),
  outputs: {
    meaning:
      'Certificates for programs on its nodes: [PROGRAMS.md](PROGRAMS.md). They replace outputs of the profile with the same name.',
    change: 'Where programs of this group need certificates.',
  },
  'tasks.types': {
    meaning:
      'The types of [tasks](TASKS.md) that may be queued for its nodes. The host has the last word: it takes what its own file allows.',
    change:
      'Where operators or workers have something done on these nodes. `run` and `reboot` also need the switch of the domain.',
  },
}
