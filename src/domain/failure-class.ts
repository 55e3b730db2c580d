// Why a node is not connected, in eight words. One pure function from what was observed to a class, with the evidence and
// what an operator does next; nothing is retried before it has been asked.

export const failureClasses = [
  'endpoint_unreachable',
  'server_tls_untrusted',
  'cert_expired',
  'identity_revoked_or_fenced',
  'endpoint_profile_drift',
  'recovery_enrollment_blocked',
  'disk_full',
  'clock_skew',
] as const
export type FailureClass = (typeof failureClasses)[number]
