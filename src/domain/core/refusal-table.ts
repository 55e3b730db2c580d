// Every reason Muster refuses something, one row each: the sentence for the caller, the HTTP status, whose fault it is, and what
// a refused agent can do about it. The codes are a promise: never renamed, never reused.

import { fleetRefusals } from './fleet-refusals.ts'
import { taskRefusals } from './task-refusals.ts'
import { issuerRefusals } from './issuer-refusals.ts'
import { workerRefusals } from './worker-refusals.ts'

/**
 * What a refused agent can do. agent/link/after-refusal.ts says what follows in each situation, and
 * domain/recovery/failure-class.ts what it means for the node: neither compiles while a class is not placed there.
 */
export type RetryClass =
  /** The plane cannot serve now. */
  | 'later'
  /** The plane serves, and signs nothing now. */
  | 'issuance-stopped'
  /** The challenge was too old: the next try brings a new one. */
  | 'new-challenge'
  /** The identity is taken by a node that is still active; it becomes free when the grace of that node ends. */
  | 'when-free'
  /** The key of the request may not be certified. */
  | 'new-key'
  /** The certificate request itself is wrong. */
  | 'new-request'
  /** The token or the join method does not work, and will not. */
  | 'new-token'
  /** The request is wrong in a way that repeating it does not change. */
  | 'wrong-request'
  /** This plane does not have that call. */
  | 'no-such-call'
  /** This listener is not the one for that name. */
  | 'wrong-address'
  /** The repair bundle is used up; what the node had before it came is left. */
  | 'drop-bundle'
  /** The node is a tombstone. */
  | 'revoked'
  /** The certificate is over, denied, or not in the store; another one may still be good. */
  | 'certificate-expired'
  | 'certificate-denied'
  | 'certificate-unknown'
  /** The identity is no longer accepted, and another source of identity may work. */
  | 'rejoin'
  /** Only an operator changes it. Each of these is a different problem of the node. */
  | 'identity-blocked'
  | 'identity-unproven'
  | 'second-holder'
  | 'approval'
  | 'recovery-limit'
  | 'no-recovery'
  /** Refused to operators, or to an agent whose plane has to be set up differently. */
  | 'operator'
  | UnknownRetryClass

/** What is left for an answer of a later release, or of something in front of the plane (wire/core/newer-codes.ts). */
export type UnknownRetryClass =
  /** A server error. */
  | 'unknown-later'
  /** No error body, and the address or the method is not there. */
  | 'unknown-address'
  | 'unknown'

export type RefusalRow = {
  readonly status: number
  /** `plane`: the caller did nothing wrong, so it is neither charged nor journaled: the journal may be what is in trouble. */
  readonly fault: 'caller' | 'plane'
  readonly retry: Exclude<RetryClass, UnknownRetryClass>
  readonly message: string
  /** What to do. Words in capitals are filled in where they are known (wire/core/refusal-response.ts). */
  readonly next: string
}

// prettier-ignore
export const refusals = {
  // who are you
  CLIENT_CERT_REQUIRED: { status: 401, fault: 'caller', retry: 'identity-unproven',
    message: 'This call needs a client certificate.', next: 'Enroll first: muster agent run --join-file FILE' },
  CLIENT_CERT_UNKNOWN: { status: 401, fault: 'caller', retry: 'certificate-unknown',
    message: 'This certificate was not issued by this plane, or is no longer on record.',
    next: 'Enroll again with a new token: muster token create --node ID' },
  CLIENT_CERT_EXPIRED: { status: 401, fault: 'caller', retry: 'certificate-expired',
    message: 'This certificate has expired.',
    next: 'Compare the clocks of both machines; then enroll again: muster token create --node ID' },
  CLIENT_CERT_DENIED: { status: 403, fault: 'caller', retry: 'certificate-denied',
    message: 'This certificate has been withdrawn.',
    next: 'Ask why: muster node show ID; to let the machine join anew: muster token create --node ID' },
  IDENTITY_MISMATCH: { status: 403, fault: 'caller', retry: 'identity-blocked',
    message: 'The certificate belongs to another node than the one named in the path.',
    next: 'Use the path of the node the certificate was issued to' },
  SERIAL_MISMATCH: { status: 403, fault: 'caller', retry: 'rejoin',
    message: 'This certificate has been replaced by a newer one.',
    next: 'Use the newer certificate; if this node has none, another machine uses its identity: muster node show ID' },
  LINEAGE_CONFLICT: { status: 409, fault: 'caller', retry: 'identity-blocked',
    message: 'This certificate already has a successor with another key.',
    next: 'Another machine may use this identity: muster node show ID, then quarantine it or make a token with --replace' },
  OPERATOR_KEY_REQUIRED: { status: 401, fault: 'caller', retry: 'operator',
    message: 'This call needs an operator key.', next: 'Pass --key-file FILE or set MUSTER_KEY_FILE' },
  OPERATOR_KEY_INVALID: { status: 401, fault: 'caller', retry: 'operator',
    message: 'This operator key is unknown or revoked.',
    next: 'Ask a platform-admin for a new one: muster key create NAME --role operator' },
  OPERATOR_KEY_EXPIRED: { status: 401, fault: 'caller', retry: 'operator',
    message: 'This operator key has expired.',
    next: 'Ask a platform-admin for a new one: muster key create NAME --role operator --expires 90d' },
  ROLE_FORBIDDEN: { status: 403, fault: 'caller', retry: 'operator',
    message: 'The role of this key does not allow that.',
    next: 'Use a key with the role the message names: muster key list' },

  // may this node have an identity
  NODE_NOT_ENROLLED: { status: 403, fault: 'caller', retry: 'rejoin',
    message: 'No registered node matches.',
    next: 'Register it: muster node enroll ID --profile hpc-diskless --mac MAC --bmc-serial SERIAL' },
  NODE_NOT_FOUND: { status: 404, fault: 'caller', retry: 'identity-blocked',
    message: 'There is no node of that name.', next: 'List what there is: muster node list' },
  ACTOR_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'No operator, node or part of the plane has that name.',
    next: 'Write it as the journal does, such as operator:NAME: muster journal list' },
  NODES_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'No node matches.', next: 'Look with the same filters: muster node list' },
  NODE_ALREADY_ENROLLED: { status: 409, fault: 'caller', retry: 'operator',
    message: 'A node of that name is registered already.',
    next: 'Nothing needs doing; to see it: muster node show ID' },
  ALREADY_ACTIVE: { status: 409, fault: 'caller', retry: 'when-free',
    message: 'This node is active with another key.',
    next: 'If the machine was replaced or reinstalled: muster token create --node ID --replace' },
  NODE_REVOKED: { status: 403, fault: 'caller', retry: 'revoked',
    message: 'This node has been revoked.',
    next: 'To let the machine back in, register it anew (muster node enroll ID), then start its agent with a token: muster token create --node ID' },
  NODE_QUARANTINED: { status: 403, fault: 'caller', retry: 'identity-blocked',
    message: 'This node is in quarantine.', next: 'Find out why (muster node show ID), then: muster node release ID' },
  NODE_STATE_CONFLICT: { status: 409, fault: 'caller', retry: 'identity-blocked',
    message: 'The node is in a state that does not allow that.', next: 'See its state: muster node show ID' },
  REJOIN_REQUIRED: { status: 403, fault: 'caller', retry: 'rejoin',
    message: 'This node became inactive, and its profile asks it to join again.', next: 'Its agent does so automatically' },
  APPROVAL_REQUIRED: { status: 403, fault: 'caller', retry: 'approval',
    message: 'An operator has to approve this node first.', next: 'Approve it: muster node approve ID' },
  JOIN_METHOD_NOT_ALLOWED: { status: 403, fault: 'caller', retry: 'new-token',
    message: "The node's profile does not allow this way of joining.",
    next: 'See which it allows: muster profile show PROFILE' },
  HARDWARE_IDENTITY_CONFLICT: { status: 409, fault: 'caller', retry: 'identity-unproven',
    message: 'This hardware identity belongs to another node.',
    next: 'Find its owner: muster node list -o json; revoke it or correct the address' },
  DUPLICATE_IDENTITY: { status: 409, fault: 'caller', retry: 'second-holder',
    message: 'Another machine uses this identity too.',
    next: 'Find out which machine is the right one: muster node explain ID; then muster node settle ID, muster node repair-bundle ID or muster node revoke ID' },

  // recovery
  CHALLENGE_INVALID: { status: 400, fault: 'caller', retry: 'new-challenge',
    message: 'The challenge is not one of this plane, or is too old.',
    next: 'Ask for a new one and repeat the request; the agent does so automatically' },
  RECOVERY_UNKNOWN: { status: 403, fault: 'caller', retry: 'no-recovery',
    message: 'No recovery credential of this node matches.',
    next: 'Start its agent with a new token: muster token create --node ID (for an active node with --replace); or repair it: muster node repair-bundle ID --reason REASON --out FILE' },
  RECOVERY_DENIED: { status: 403, fault: 'caller', retry: 'recovery-limit',
    message: 'This node may not recover without an operator.',
    next: 'Let it in by hand: muster node approve ID, or muster token create --node ID' },
  RECOVERY_BUDGET_SPENT: { status: 403, fault: 'caller', retry: 'recovery-limit',
    message: 'This node has recovered too often.',
    next: 'Find out why (muster node explain ID); then let it once more: muster node approve ID' },
  REPAIR_TOKEN_INVALID: { status: 403, fault: 'caller', retry: 'drop-bundle',
    message: 'The repair bundle is unknown, used up or expired.',
    next: 'Make a new one: muster node repair-bundle ID --reason REASON --out FILE' },

  // is the key one that may be certified
  KEY_IN_USE: { status: 409, fault: 'caller', retry: 'new-key',
    message: 'This public key is or was the key of a node, and is certified only once.',
    next: 'Make a new key here (an agent does so automatically); remove copied state from the image: muster alert list' },
  KEY_BLOCKED: { status: 403, fault: 'caller', retry: 'new-key',
    message: 'This public key is banned.', next: 'Generate a new key' },
  CSR_INVALID: { status: 400, fault: 'caller', retry: 'new-request',
    message: 'The certificate request is not acceptable.',
    next: 'Make a PKCS#10 request signed by its own key, of a type the profile allows' },

  // tokens
  TOKEN_MALFORMED: { status: 400, fault: 'caller', retry: 'new-token',
    message: 'The token does not have the shape of a token.',
    next: 'Copy the whole join string again; a token is enroll_ and 43 characters' },
  TOKEN_INVALID: { status: 403, fault: 'caller', retry: 'new-token',
    message: 'The token is unknown or has been withdrawn.', next: 'Make a new one: muster token create --node ID' },
  TOKEN_EXPIRED: { status: 403, fault: 'caller', retry: 'new-token',
    message: 'The token has expired.', next: 'Make a new one: muster token create --node ID' },
  TOKEN_USED: { status: 403, fault: 'caller', retry: 'new-token',
    message: 'The token has been used by another key.',
    next: 'If that was not this machine, look at the journal: muster journal list --type host.enrolled; else make a new one' },
  TOKEN_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'There is no token of that id.', next: 'List what there is: muster token list' },
  ATTEMPT_OUTDATED: { status: 409, fault: 'caller', retry: 'operator',
    message: 'A later attempt at this batch has made a token for this node.',
    next: 'If that was not this command, run it again: it takes the place of the other' },
  AGENT_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'This plane hands out no agent with that digest.',
    next: 'See which it hands out (muster domain agents), and make a new bundle: muster node bundle ID' },
  DOWNLOADS_SPENT: { status: 429, fault: 'caller', retry: 'operator',
    message: 'That file has been fetched too often with this credential.',
    next: 'With a token, make a new bundle: muster node bundle ID; with a certificate, wait for the time in Retry-After' },

  // the names of the plane
  NAME_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'The plane does not serve that name.', next: 'List the names it has: muster domain names list' },
  NAME_CONFIGURED: { status: 409, fault: 'caller', retry: 'operator',
    message: 'The plane is configured with that name.',
    next: 'Start it without that --server-name (MUSTER_SERVER_NAME) or listener; then: muster domain names drop NAME' },

  // rules that are data
  PROFILE_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'There is no profile of that name.', next: 'List what there is: muster profile list' },
  PROFILE_EXISTS: { status: 409, fault: 'caller', retry: 'operator',
    message: 'A profile of that name exists already.', next: 'Change it: muster profile set NAME KEY=VALUE' },
  PROFILE_IN_USE: { status: 409, fault: 'caller', retry: 'operator',
    message: 'The profile is in use.',
    next: 'Do what the message names, then again: muster profile delete PROFILE' },
  PROFILE_INVALID: { status: 400, fault: 'caller', retry: 'wrong-request',
    message: 'The profile would not work.', next: 'Correct the value the message names' },
  SETTING_INVALID: { status: 400, fault: 'caller', retry: 'operator',
    message: 'The setting would not work.', next: 'Correct the value the message names' },
  KEY_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'There is no operator key of that id.', next: 'List what there is: muster key list' },
  LAST_ADMIN_KEY: { status: 409, fault: 'caller', retry: 'operator',
    message: 'This is the last platform-admin key.',
    next: 'Create another first: muster key create NAME --role platform-admin' },
  CA_REQUEST_INVALID: { status: 400, fault: 'caller', retry: 'operator',
    message: 'The certificate does not answer the request of this plane.',
    next: 'Make a new request and have the root sign it: muster ca request, muster ca sign' },
  CA_ROOT_OFFLINE: { status: 409, fault: 'caller', retry: 'operator',
    message: "The root's key is not on this plane.",
    next: 'Carry a request to it: muster ca request, then muster ca sign where the key is, then muster ca import' },

  PKCS11_UNAVAILABLE: { status: 503, fault: 'plane', retry: 'later',
    message: 'A key that is in a PKCS#11 token cannot be used now.',
    next: 'Look at the token and at the module on the host of the plane: muster ca show says what is wrong' },
  TRANSIT_UNAVAILABLE: { status: 503, fault: 'plane', retry: 'later',
    message: 'A key that is in Vault (Transit) cannot be used now.',
    next: 'Look at Vault and at the login of the plane there: muster ca show says what is wrong' },

  // the fleet
  ...fleetRefusals,

  // requests
  REQUEST_INVALID: { status: 400, fault: 'caller', retry: 'wrong-request',
    message: 'The request does not fit the schema.',
    next: 'Correct the field the message names; docs/API.md has the schema' },
  ALERT_NOT_FOUND: { status: 404, fault: 'caller', retry: 'operator',
    message: 'There is no alert of that id.', next: 'List what there is: muster alert list' },
  NOT_FOUND: { status: 404, fault: 'caller', retry: 'no-such-call',
    message: 'There is no such address here.', next: 'docs/API.md lists the addresses' },
  METHOD_NOT_ALLOWED: { status: 405, fault: 'caller', retry: 'no-such-call',
    message: 'This address does not take that method.', next: 'docs/API.md lists the methods' },
  HOST_NOT_ALLOWED: { status: 421, fault: 'caller', retry: 'wrong-address',
    message: 'The Host or Origin of this request is not one this listener answers.',
    next: 'Call it by the address it prints at start' },
  RATE_LIMITED: { status: 429, fault: 'caller', retry: 'later',
    message: 'Too many failing attempts.',
    next: 'Wait for the time in Retry-After, and check the credential meanwhile' },
  RANGE_NOT_SATISFIABLE: { status: 416, fault: 'caller', retry: 'wrong-request',
    message: 'The range begins behind the end of the file.',
    next: 'Content-Range has the length; ask from the beginning, or for nothing more' },
  BUSY: { status: 503, fault: 'plane', retry: 'later',
    message: 'The plane is working through many requests.', next: 'Try again after the time in Retry-After' },
  TOO_LARGE: { status: 413, fault: 'caller', retry: 'wrong-request',
    message: 'The request is larger than allowed.', next: 'Send at most 64 KiB' },
  DISK_TROUBLE: { status: 503, fault: 'plane', retry: 'later',
    message: 'The plane cannot write to its store.',
    next: 'Make room or repair the disk of the plane; nothing was changed' },
  CUT_OFF_PENDING: { status: 503, fault: 'plane', retry: 'operator',
    message: 'This is in force at this replica only: the database cannot commit it now.',
    next: 'Make room for the database or bring it back; this replica repeats it until it is committed. Give the same order to the replicas that do not know it, or stop them' },
  REPLICA_BEHIND: { status: 503, fault: 'plane', retry: 'later',
    message: 'This replica of the plane is behind the other replicas.',
    next: 'Try again after the time in Retry-After: another replica, or this one once it is back, answers' },
  STORE_IN_DOUBT: { status: 503, fault: 'plane', retry: 'issuance-stopped',
    message: 'The store of this plane may be an older copy: nothing is issued from it.',
    next: 'Find out what happened, revoke again what was revoked since, then: muster store confirm --reason REASON' },
  STORE_NOT_IN_DOUBT: { status: 409, fault: 'caller', retry: 'operator',
    message: 'Nothing speaks against the store of this plane.', next: 'Nothing needs doing' },
  UPGRADE_UNFINISHED: { status: 409, fault: 'caller', retry: 'later',
    message: 'Replicas of an older release run, and would not understand this.',
    next: 'Upgrade or stop them (muster store status names them), then try again' },
  UNAVAILABLE: { status: 503, fault: 'plane', retry: 'later',
    message: 'The plane could not finish this.', next: 'Try again; the log of the plane says why' },
  ...taskRefusals,
  ...workerRefusals,
  ...issuerRefusals,
} as const satisfies Record<string, RefusalRow>

export type RefusalCode = keyof typeof refusals

/** A text from another process may be a code of a later release. */
export const isRefusalCode = (text: string): text is RefusalCode => Object.hasOwn(refusals, text)
