// Why a host did not carry out a task, or not to its end. Codes are part of the API: never renamed and never reused.

export const taskFaults = [
  /** Not a task, or its signature does not fit. */
  'NOT_SIGNED',
  'SIGNER_UNKNOWN',
  'SIGNER_WITHDRAWN',
  'WRONG_DOMAIN',
  'WRONG_NODE',
  'WRONG_EPOCH',
  'TASK_EXPIRED',
  'LIVES_TOO_LONG',
  'SEEN_BEFORE',
  /** By the host's own file. */
  'TYPE_NOT_ALLOWED',
  'PARAMETERS_INVALID',
  /** An executable, a service or a directory that the host's own file does not name. */
  'NOT_LISTED',
  /** A path that others than root could change. */
  'PATH_UNSAFE',
  /** The host has no way to limit time and memory. */
  'NO_LIMITS',
  'STATEMENT_MISSING',
  'STATEMENT_NOT_SIGNED',
  'STATEMENT_EXPIRED',
  'STATEMENT_OLDER',
  'STATEMENT_OF_ANOTHER',
  /** The statement keys that root lays down: not there, not keys, or in a file that others could change. */
  'KEYS_UNREADABLE',
  /** The clock is in doubt, or the host remembers nothing: only a statement with its own nonce helps. */
  'FRESH_STATEMENT_NEEDED',
  'HELPER_BUSY',
  'DISK_FULL',
  'PROGRAM_FAILED',
  'TIMED_OUT',
  /** The helper ended in the middle: whether it had an effect is unknown. */
  'INTERRUPTED',
  'FILE_DIFFERS',
  'NOT_DONE',
] as const

export type TaskFault = (typeof taskFaults)[number]
