// What the exit code of every command means. Scripts rely on these: never renumbered.

export const exitCodes = {
  ok: 0,
  refused: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  journalBroken: 5,
  partly: 6,
  notReady: 7,
  notEffective: 8,
  inForceHereOnly: 9,
  onlyPlanned: 10,
  taskFailed: 11,
  unavailable: 69,
  fault: 70,
  tryLater: 75,
  serverUntrusted: 76,
  agentRefused: 77,
  misconfigured: 78,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export const exitCodeNames = Object.keys(exitCodes) as (keyof typeof exitCodes)[]

export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'done',
  refused: 'the plane refused; its code is printed',
  usage: 'the command line or a file given to it is wrong; nothing was sent',
  notFound: 'there is no such node, token, profile or key, or a selector matches none',
  notAllowed: 'no valid operator key, or its role does not allow that',
  journalBroken: 'journal verify: the chain is not intact, or rows differ from it',
  partly: 'several nodes, or lines of node enroll --batch: some failed',
  notReady: 'agent status: the agent is not running, or not connected; store confirm: the store is in doubt',
  notEffective: 'node revoke, receipt show: decided, and not proven to be in effect everywhere yet',
  inForceHereOnly:
    'node revoke, node quarantine, issuance halt, ca rotate --compromised: in force at the replica that answered only, until its database commits it',
  onlyPlanned:
    'apply, verbs on nodes and task create where a selector chooses, node purge, and node revoke or decommission of several: nothing was done, a plan was made',
  taskFailed: 'task wait, task create --wait: the task has ended and was not completed',
  unavailable: 'no plane answers there',
  fault: 'something broke, here or in the plane',
  tryLater: 'the plane cannot do it now; try again later',
  serverUntrusted: 'agent run: the server could not be recognised; nothing was sent to it',
  agentRefused: 'agent run: the plane refused this node, or it was revoked; worker run: the worker was revoked',
  misconfigured:
    'agent run: it lacks what it needs, or its state is damaged; plane, ca replace-lost: the set-up or the data folder cannot work',
}

/** Codes of a newer plane are unknown here, so the HTTP status decides what the code alone does not. */
export const exitCodeOf = (code: string, status: number): ExitCode => {
  if (code.endsWith('_NOT_FOUND') || code === 'NOT_FOUND') return exitCodes.notFound
  if (code.startsWith('OPERATOR_KEY_') || code === 'ROLE_FORBIDDEN' || code === 'HOST_NOT_ALLOWED')
    return exitCodes.notAllowed
  if (code === 'CUT_OFF_PENDING') return exitCodes.inForceHereOnly
  if (status === 429 || status === 503) return exitCodes.tryLater
  return status >= 500 ? exitCodes.fault : exitCodes.refused
}
