// A refusal is an expected no: a closed code, a sentence, and what to do next. It is a value, never thrown.

import type { HardwareIdentity } from './node.ts'

/** Every reason Muster refuses something, with what it tells the caller. The codes are a promise: never renamed, never reused. */
export const refusals = {
  // who are you
  CLIENT_CERT_REQUIRED: ['This call needs a client certificate.', 'Enrol first: muster agent run --join-file FILE'],
  CLIENT_CERT_UNKNOWN: [
    'This certificate was not issued by this plane, or is no longer on record.',
    'Enrol again with a new token: muster token create --node ID',
  ],
  CLIENT_CERT_EXPIRED: [
    'This certificate has expired.',
    'Compare the clocks of both machines; then enrol again: muster token create --node ID',
  ],
  CLIENT_CERT_DENIED: ['This certificate has been withdrawn.', 'Ask why: muster node show ID'],
  IDENTITY_MISMATCH: [
    'The certificate belongs to another node than the one named in the path.',
    'Use the path of the node the certificate was issued to',
  ],
  SERIAL_MISMATCH: [
    'This certificate has been replaced by a newer one.',
    'Use the newer certificate; if this node has none, a second holder of its identity exists: muster node show ID',
  ],
  LINEAGE_CONFLICT: [
    'This certificate already has a successor with another key.',
    'A second holder of this identity may exist: muster node show ID, then quarantine it or make a token with --replace',
  ],
  OPERATOR_KEY_REQUIRED: ['This call needs an operator key.', 'Pass --key-file FILE or set MUSTER_KEY_FILE'],
  OPERATOR_KEY_INVALID: [
    'This operator key is unknown or revoked.',
    'Ask a platform-admin for a new one: muster key create NAME --role operator',
  ],
  ROLE_FORBIDDEN: [
    'The role of this key does not allow that.',
    'Use a key with the role the message names: muster key list',
  ],

  // may this node have an identity
  NODE_NOT_ENROLLED: [
    'No registered node matches.',
    'Register it: muster node enroll ID --profile hpc-diskless --mac MAC --bmc-serial SERIAL',
  ],
  NODE_NOT_FOUND: ['There is no node of that name.', 'List what there is: muster node list'],
  NODE_ALREADY_ENROLLED: [
    'A node of that name is registered already.',
    'Nothing needs doing; to see it: muster node show ID',
  ],
  ALREADY_ACTIVE: [
    'This node is active with another key.',
    'If the machine was replaced or reinstalled: muster token create --node ID --replace',
  ],
  NODE_REVOKED: ['This node has been revoked.', 'To let the machine back in, register it anew: muster node enroll ID'],
  NODE_QUARANTINED: ['This node is in quarantine.', 'Find out why (muster node show ID), then: muster node release ID'],
  NODE_STATE_CONFLICT: ['The node is in a state that does not allow that.', 'See its state: muster node show ID'],
  REJOIN_REQUIRED: ['This node lapsed, and its profile asks it to join again.', 'Its agent does so by itself'],
  APPROVAL_REQUIRED: ['An operator has to approve this node first.', 'Approve it: muster node approve ID'],
  JOIN_METHOD_NOT_ALLOWED: [
    "The node's profile does not allow this way of joining.",
    'See which it allows: muster profile show PROFILE',
  ],
  HARDWARE_IDENTITY_CONFLICT: [
    'This hardware identity belongs to another node.',
    'Find its owner: muster node list -o json; revoke it or correct the address',
  ],
  DUPLICATE_IDENTITY: [
    'Somebody else holds this identity too.',
    'Find out which machine is the right one: muster node explain ID; then muster node settle ID, muster node repair-bundle ID or muster node revoke ID',
  ],

  // recovery
  CHALLENGE_INVALID: [
    'The challenge is not one of this plane, or is too old.',
    'Ask for a new one and repeat the request; the agent does so by itself',
  ],
  RECOVERY_UNKNOWN: [
    'No recovery credential of this node matches.',
    'Let the machine enrol again: muster token create --node ID; or repair it: muster node repair-bundle ID',
  ],
  RECOVERY_DENIED: [
    'This node may not recover by itself.',
    'Let it in by hand: muster node approve ID, or muster token create --node ID',
  ],
  RECOVERY_BUDGET_SPENT: [
    'This node has recovered too often.',
    'Find out why (muster node explain ID); then let it once more: muster node approve ID',
  ],
  REPAIR_TOKEN_INVALID: [
    'The repair bundle is unknown, used up or expired.',
    'Make a new one: muster node repair-bundle ID --reason REASON --out FILE',
  ],

  // is the key one that may be certified
  KEY_IN_USE: [
    'This public key is or was the key of a node, and is certified only once.',
    'Make a new key here (an agent does so by itself); remove copied state from the image: muster alert list',
  ],
  KEY_BLOCKED: ['This public key is banned.', 'Generate a new key'],
  CSR_INVALID: [
    'The certificate request is not acceptable.',
    'Make a PKCS#10 request signed by its own key, of a type the profile allows',
  ],

  // tokens
  TOKEN_MALFORMED: [
    'The token does not have the shape of a token.',
    'Copy the whole join string again; a token is enroll_ and 43 characters',
  ],
  TOKEN_INVALID: ['The token is unknown or has been withdrawn.', 'Make a new one: muster token create --node ID'],
  TOKEN_EXPIRED: ['The token has expired.', 'Make a new one: muster token create --node ID'],
  TOKEN_USED: [
    'The token has been used by another key.',
    'If that was not this machine, look at the journal: muster journal list --type host.enrolled; else make a new one',
  ],
  TOKEN_NOT_FOUND: ['There is no token of that id.', 'List what there is: muster token list'],

  // rules that are data
  PROFILE_NOT_FOUND: ['There is no profile of that name.', 'List what there is: muster profile list'],
  PROFILE_EXISTS: ['A profile of that name exists already.', 'Change it: muster profile set NAME KEY=VALUE'],
  PROFILE_INVALID: ['The profile would not work.', 'Correct the value the message names'],
  SETTING_INVALID: ['The setting would not work.', 'Correct the value the message names'],
  KEY_NOT_FOUND: ['There is no operator key of that id.', 'List what there is: muster key list'],
  LAST_ADMIN_KEY: [
    'This is the last platform-admin key.',
    'Create another first: muster key create NAME --role platform-admin',
  ],
  CA_REQUEST_INVALID: [
    'The certificate does not answer the request of this plane.',
    'Make a new request and have the root sign it: muster ca request, muster ca sign',
  ],
  CA_ROOT_OFFLINE: [
    "The root's key is not on this plane.",
    'Carry a request to it: muster ca request, then muster ca sign where the key is, then muster ca import',
  ],

  // the fleet
  VCLUSTER_NOT_FOUND: ['There is no vCluster of that name.', 'List what there is: muster vcluster list'],
  VCLUSTER_EXISTS: ['A vCluster of that name exists already.', 'Change it: muster vcluster set NAME KEY=VALUE'],
  VCLUSTER_INVALID: ['The vCluster would not work.', 'Correct the value the message names'],
  VCLUSTER_IN_USE: [
    'Nodes are assigned to this vCluster.',
    'See what a deletion would do: muster vcluster delete NAME --plan; or move them first (muster node list --vcluster NAME): muster node move ID --to OTHER',
  ],
  NODE_NOT_SCHEDULABLE: ['Nothing may be placed on this node now.', 'See why: muster node show ID'],
  ALLOCATION_NOT_FOUND: ['There is no allocation of that id.', 'List what there is: muster allocation list'],
  RECEIPT_NOT_FOUND: ['There is no receipt of that id.', 'List what there is: muster receipt list'],
  ISSUANCE_HALTED: [
    'An operator has halted the issuance of certificates.',
    'Find out why (muster issuance show), then: muster issuance resume',
  ],
  ISSUANCE_NOT_HALTED: ['Issuance is not halted.', 'Nothing needs doing'],
  ISSUER_WITHDRAWN: [
    'The authority that issued this certificate has been withdrawn.',
    'Its agent recovers by itself; to watch it: muster node explain ID',
  ],
  ISSUER_NOT_WITHDRAWABLE: [
    'This authority cannot be withdrawn.',
    'Halt issuance (muster issuance halt --reason REASON), make a new domain with a root of its own (muster ca init), and let the machines join that: muster token create --node ID',
  ],
  ISSUER_NOT_FOUND: ['There is no such authority on record.', 'List what there is: muster ca show'],
  PLAN_NOT_FOUND: ['There is no plan of that id, or it is too old.', 'Compute it again with --plan'],
  PLAN_STALE: [
    'Something has changed since the plan was computed.',
    'Look at it again with --plan, then apply the new plan',
  ],
  PLAN_USED: ['This plan has been applied already.', 'Compute a new one with --plan'],
  PLAN_REQUIRED: [
    'This concerns more than one thing at once.',
    'See what it would do with --plan, then pass the id it prints to --apply',
  ],
  WG_KEY_IN_USE: [
    'This WireGuard public key is or was the key of another node.',
    'Find out which machine has a copy of the key; make a new key there, and a new token: muster token create --node ID',
  ],
  WG_KEY_REQUIRED: [
    "The node's profile asks for a WireGuard key.",
    'Start the agent with --wireguard INTERFACE, or see the profile: muster profile show PROFILE',
  ],
  ADDRESS_POOL_EXHAUSTED: [
    'The WireGuard network has no free address.',
    'Give the domain a larger prefix: muster domain set overlayPrefix=PREFIX',
  ],
  HARDWARE_PROFILE_NOT_FOUND: [
    'There is no hardware profile with that tag.',
    'List what there is: muster hardware-profile list',
  ],
  HARDWARE_PROFILE_EXISTS: [
    'A hardware profile with that tag exists already.',
    'Remove it first: muster hardware-profile remove TAG',
  ],
  PROFILE_TAG_CONFLICT: [
    'A machine carries the tag of one hardware profile at most.',
    'Take the other tag off in the same call: muster node tag ID --add TAG --remove TAG',
  ],
  PEER_DOMAIN_NOT_FOUND: ['There is no peer domain of that name.', 'List what there is: muster peer-domain list'],
  PEER_DOMAIN_EXISTS: ['A peer domain of that name exists already.', 'Remove it first: muster peer-domain remove NAME'],
  CLAIM_INVALID: [
    'The claim is not one a peer of this domain has signed.',
    'Compare the keys on both sides: muster peer-domain list',
  ],

  // requests
  REQUEST_INVALID: [
    'The request does not fit the schema.',
    'Correct the field the message names; docs/API.md has the schema',
  ],
  ALERT_NOT_FOUND: ['There is no alert of that id.', 'List what there is: muster alert list'],
  NOT_FOUND: ['There is no such address here.', 'docs/API.md lists the addresses'],
  METHOD_NOT_ALLOWED: ['This address does not take that method.', 'docs/API.md lists the methods'],
  HOST_NOT_ALLOWED: [
    'The Host or Origin of this request is not one this listener answers.',
    'Call it by the address it prints at start',
  ],
  RATE_LIMITED: ['Too many failing attempts.', 'Wait for the time in Retry-After, and check the credential meanwhile'],
  BUSY: ['The plane is working through many requests.', 'Try again after the time in Retry-After'],
  TOO_LARGE: ['The request is larger than allowed.', 'Send at most 64 KiB'],
  DISK_TROUBLE: [
    'The plane cannot write to its store.',
    'Make room or repair the disk of the plane; nothing was changed',
  ],
  CUT_OFF_PENDING: [
    'This is in force at this replica only: the database cannot commit it now.',
    'Make room for the database or bring it back; this replica repeats it by itself until it is committed. Give the same order to the replicas that do not know it, or stop them',
  ],
  REPLICA_BEHIND: [
    'This replica of the plane has lost touch with the others.',
    'Try again after the time in Retry-After: another replica, or this one once it is back, answers',
  ],
  STORE_IN_DOUBT: [
    'The store of this plane may be an older copy: nothing is issued from it.',
    'Find out what happened, revoke again what was revoked since, then: muster store confirm --reason REASON',
  ],
  STORE_NOT_IN_DOUBT: ['Nothing speaks against the store of this plane.', 'Nothing needs doing'],
  UNAVAILABLE: ['The plane could not finish this.', 'Try again; the log of the plane says why'],
} as const satisfies Record<string, readonly [sentence: string, next: string]>

export type RefusalCode = keyof typeof refusals

export type InForceHere = {
  /** Names of the replicas that do not know of it. */
  readonly unaware: readonly string[]
  /** Where the order survives: `memory` is lost with the process. */
  readonly kept: 'data folder' | 'memory'
}

export type Refusal = {
  readonly kind: 'refused'
  readonly code: RefusalCode
  /** What exactly was wrong, for this caller; safe to show, bounded. */
  readonly detail: string | null
  readonly retryAfterMs: number | null
  /** It was refused, and what was ordered is in force at this replica all the same. */
  readonly inForceHere?: InForceHere
  /** Whom it concerns, where the caller's own credential says so: for the journal, and to fill in the next step. */
  readonly about?: {
    readonly node?: string | null
    readonly token?: string | null
    readonly actor?: string
    /** Of the story it belongs to, where that is not the call's own. */
    readonly correlation?: string
    /** What the caller showed where it joins by hardware: without it nobody could tell which machine was refused. */
    readonly hardware?: HardwareIdentity
    /** Whose rules refused it. */
    readonly profile?: string
    /** It was committed with what it changed. */
    readonly journaled?: boolean
  }
}

export const refuse = (code: RefusalCode, detail: string | null = null): Refusal => ({
  kind: 'refused',
  code,
  detail,
  retryAfterMs: null,
})

export const refuseMethod = (profile: string, why: string): Refusal => ({
  ...refuse('JOIN_METHOD_NOT_ALLOWED', `profile ${profile} ${why}`),
  about: { profile },
})

export const isRefusal = (value: unknown): value is Refusal =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'refused' && 'code' in value
