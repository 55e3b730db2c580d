// When each alert rule has to fire, and what an ordinary day looks like.

export type Case = {
  readonly alert: string
  /** Series and their values, one a minute, in promtool's notation. */
  readonly series: Readonly<Record<string, string>>
  /** When it has to fire; a time before it does, where it waits. */
  readonly fires: string
  readonly silent?: string
}

const day = 86_400
/** In minutes: two days and a bit. */
const days = '3100'
const agent = (name: string, labels = ''): string => `muster_node_agent_${name}{instance="n"${labels}}`
const plane = (name: string, labels = ''): string => `muster_${name}{instance="p",job="m"${labels}}`
const replica = (name: string, labels = ''): string => `muster_${name}{instance="q",job="m"${labels}}`
const inGroup = ',vcluster="training",profile="gpu-cloud"'

export const firing: readonly Case[] = [
  { alert: 'MusterPlaneAbsent', series: { up: '1x20' }, silent: '4m', fires: '6m' },
  { alert: 'MusterPlaneNotReady', series: { [plane('ready')]: '1x5 0x10' }, silent: '7m', fires: '10m' },
  {
    alert: 'MusterReplicaBehind',
    series: {
      [plane('standing', ',standing="serving"')]: '1x5 0x10',
      [plane('standing', ',standing="behind"')]: '0x5 1x10',
      [plane('standing', ',standing="expired"')]: '0x15',
    },
    silent: '5m',
    fires: '8m',
  },
  {
    alert: 'MusterNobodyLeads',
    series: { [plane('leads')]: '1x5 0x10', [plane('standing', ',standing="serving"')]: '1x15' },
    silent: '6m',
    fires: '10m',
  },
  { alert: 'MusterStoreNotWritable', series: { [plane('store_writable')]: '1x5 0x10' }, silent: '5m', fires: '8m' },
  {
    alert: 'MusterStoreSlow',
    series: {
      [plane('store_commit_seconds_bucket', ',le="0.25"')]: '0+10x60',
      [plane('store_commit_seconds_bucket', ',le="0.5"')]: '0+100x60',
      [plane('store_commit_seconds_bucket', ',le="+Inf"')]: '0+100x60',
    },
    silent: '5m',
    fires: '30m',
  },
  {
    alert: 'MusterStoreCommitsFail',
    series: { [plane('store_failed_groups_total')]: '0x5 1x20' },
    silent: '4m',
    fires: '8m',
  },
  {
    alert: 'MusterIssuerAway',
    series: { [plane('issuer_away', ',issuer="corp"')]: '1x20' },
    silent: '3m',
    fires: '6m',
  },
  {
    alert: 'MusterIssuerSlow',
    series: { [plane('issuer_waiting', ',issuer="corp"')]: '4x40' },
    silent: '10m',
    fires: '20m',
  },
  { alert: 'MusterAdmissionQueueLong', series: { [plane('admission_queue')]: '900x20' }, silent: '3m', fires: '6m' },
  {
    alert: 'MusterRefusalsBurst',
    series: { [plane('refusals_total', ',code="TOKEN_INVALID"')]: '0+200x60' },
    silent: '8m',
    fires: '30m',
  },
  { alert: 'MusterWebhookStuck', series: { [plane('webhook_waiting')]: '1x120' }, silent: '20m', fires: '70m' },
  {
    alert: 'MusterWebhookGaveUp',
    series: { [plane('webhook_deliveries_total', ',outcome="given_up"')]: '0x10 1x20' },
    silent: '9m',
    fires: '15m',
  },
  {
    alert: 'MusterAlertOpen',
    series: { [plane('alerts', ',kind="spoof_suspected",severity="critical",state="open"')]: '1x60' },
    silent: '10m',
    fires: '20m',
  },
  { alert: 'MusterTasksWait', series: { [plane('task_queue_age_seconds')]: '0+60x90' }, silent: '45m', fires: '55m' },
  {
    alert: 'MusterTasksFail',
    series: {
      [plane('task_results_total', ',outcome="completed"')]: '0+1x60',
      [plane('task_results_total', ',outcome="failed"')]: '0x10 2x10 4x40',
      [replica('task_results_total', ',outcome="refused"')]: '0x10 2x10 5x40',
    },
    silent: '19m',
    fires: '25m',
  },
  {
    alert: 'MusterTasksUnknown',
    series: { [plane('task_results_total', ',outcome="unknown"')]: '0x10 1x20' },
    silent: '9m',
    fires: '15m',
  },
  {
    alert: 'MusterServerCertificateAging',
    series: { [plane('server_certificate_not_after_seconds')]: `${20 * day}x200` },
    silent: '30m',
    fires: '70m',
  },
  {
    alert: 'MusterServerCertificateEnding',
    series: { [plane('server_certificate_not_after_seconds')]: `${2 * day}x20` },
    fires: '5m',
  },
  {
    alert: 'MusterIssuerAging',
    series: { [plane('issuer_not_after_seconds', ',role="issuing"')]: `${20 * day}x200` },
    silent: '30m',
    fires: '70m',
  },
  {
    alert: 'MusterRootAging',
    series: { [plane('issuer_not_after_seconds', ',role="recovery"')]: `${300 * day}x200` },
    silent: '30m',
    fires: '70m',
  },
  { alert: 'MusterNodesOverdue', series: { [plane('certificates_overdue')]: '2x60' }, silent: '10m', fires: '20m' },
  {
    alert: 'MusterNodesExpired',
    series: { [plane('node_conditions', ',condition="cert_expired"')]: '1x20' },
    silent: '3m',
    fires: '7m',
  },
  { alert: 'MusterNotRecoverable', series: { [plane('recoverable_ratio')]: '0.5x2000' }, silent: '25h', fires: '27h' },
  {
    alert: 'MusterRecoverabilityDropped',
    series: { [plane('recoverable_ratio')]: '1x1500 0.5x100' },
    silent: '24h',
    fires: '25h50m',
  },
  { alert: 'MusterChannelsDropped', series: { [plane('channels_open')]: '100x30 60x60' }, silent: '29m', fires: '40m' },
  {
    alert: 'MusterRecoveriesBurst',
    series: { [plane('recoveries_total', ',by="credential"')]: '0+2x120' },
    silent: '5m',
    fires: '60m',
  },
  {
    alert: 'MusterRecoveriesRefused',
    series: { [plane('recoveries_refused_total')]: '0+1x60' },
    silent: '3m',
    fires: '30m',
  },
  { alert: 'MusterSecondHolder', series: { [plane('second_holders_total')]: '0x10 1x20' }, silent: '9m', fires: '15m' },
  {
    alert: 'MusterAgentCertificateEnding',
    series: { [agent('cert_expiry_seconds')]: '3000x60' },
    silent: '10m',
    fires: '20m',
  },
  {
    alert: 'MusterAgentCertificateExpired',
    series: { [agent('cert_expiry_seconds')]: '-5x20' },
    silent: '3m',
    fires: '7m',
  },
  {
    alert: 'MusterProgramCertificateEnding',
    series: { [agent('program_cert_expiry_seconds', ',output="web"')]: '3000x60' },
    silent: '10m',
    fires: '20m',
  },
  {
    alert: 'MusterProgramOutputFails',
    series: { [agent('program_output_in_place', ',output="web"')]: '1x5 0x60' },
    silent: '15m',
    fires: '25m',
  },
  {
    alert: 'MusterAgentSilent',
    series: { [agent('last_successful_mtls_task_poll_timestamp')]: '0x60' },
    silent: '18m',
    fires: '30m',
  },
  {
    alert: 'MusterAgentRenewalsFail',
    series: { [agent('cert_renewal_failures_total', ',reason="clock_skew"')]: '0+1x60' },
    silent: '1m',
    fires: '30m',
  },
  {
    alert: 'MusterAgentRecoveryFails',
    series: { [agent('recovery_enrollment_failures_total', ',reason="disk_full"')]: '0x5 1x60' },
    silent: '4m',
    fires: '10m',
  },
  {
    alert: 'MusterAgentRecovering',
    series: {
      [agent('recovery_enrollment_attempts_total', ',reason="cert_expired"')]: '0+1x60',
      [agent('recovery_enrollment_success_total')]: '0x60',
    },
    silent: '5m',
    fires: '40m',
  },
  {
    alert: 'MusterAgentRenewsTooOften',
    series: { [agent('cert_renewal_attempts_total')]: '0+1x60' },
    silent: '10m',
    fires: '50m',
  },
  {
    alert: 'MusterAgentDiskNearlyFull',
    series: { [agent('node_filesystem_available_bytes', ',mount="/"')]: '1000000x60' },
    silent: '5m',
    fires: '15m',
  },
  {
    alert: 'MusterAgentRecordLost',
    series: { [agent('local_diagnostic_write_failures_total', ',reason="ENOSPC"')]: '0x5 1x60' },
    silent: '4m',
    fires: '10m',
  },
  {
    alert: 'MusterAgentEndpointDrift',
    series: { [agent('endpoint_profile_drift_total')]: '0+1x60' },
    silent: '2m',
    fires: '20m',
  },
  {
    alert: 'MusterCertificatesEnding',
    series: { [plane('cert_expiry_min_seconds', inGroup)]: '3000x60' },
    silent: '10m',
    fires: '20m',
  },
  {
    alert: 'MusterProgramCertificatesEnding',
    series: { [plane('agents_program_cert_expiry_min_seconds', inGroup)]: '3000x60' },
    silent: '10m',
    fires: '20m',
  },
  {
    alert: 'MusterProgramOutputsFail',
    series: { [plane('agents_program_outputs_failing', inGroup)]: '0x5 1x60' },
    silent: '15m',
    fires: '25m',
  },
  {
    alert: 'MusterAgentsSilent',
    series: { [plane('agents_oldest_report_timestamp_seconds', inGroup)]: '0x60' },
    silent: '18m',
    fires: '30m',
  },
  {
    // Neither replica alone has seen three.
    alert: 'MusterAgentsRenewalsFail',
    series: {
      [plane('agents_cert_renewal_failures_total', `${inGroup},reason="clock_skew"`)]: '0x10 2x50',
      [replica('agents_cert_renewal_failures_total', `${inGroup},reason="clock_skew"`)]: '0x10 2x50',
    },
    silent: '9m',
    fires: '30m',
  },
  {
    alert: 'MusterAgentsRecoveryFails',
    series: { [plane('agents_recovery_enrollment_failures_total', `${inGroup},reason="disk_full"`)]: '0x5 1x60' },
    silent: '4m',
    fires: '10m',
  },
  {
    alert: 'MusterAgentsRecovering',
    series: {
      [plane('agents_recovery_enrollment_attempts_total', `${inGroup},reason="cert_expired"`)]: '0+1x60',
      [plane('agents_recovery_enrollment_success_total', inGroup)]: '0x60',
    },
    silent: '5m',
    fires: '40m',
  },
  {
    alert: 'MusterAgentsRenewTooOften',
    series: {
      [plane('agents_cert_renewal_attempts_total', inGroup)]: '0+2x60',
      [plane('agents_reporting', inGroup)]: '1x60',
      [replica('agents_reporting', inGroup)]: '1x60',
    },
    silent: '10m',
    fires: '50m',
  },
  {
    alert: 'MusterAgentsDiskNearlyFull',
    series: { [plane('agents_filesystem_available_min_bytes', `${inGroup},use="identity"`)]: '1000000x60' },
    silent: '5m',
    fires: '15m',
  },
  {
    alert: 'MusterAgentsRecordLost',
    series: { [plane('agents_local_diagnostic_write_failures_total', `${inGroup},reason="ENOSPC"`)]: '0x5 1x60' },
    silent: '4m',
    fires: '10m',
  },
  {
    alert: 'MusterAgentsEndpointDrift',
    series: { [plane('agents_endpoint_profile_drift_total', inGroup)]: '0+1x60' },
    silent: '2m',
    fires: '20m',
  },
]

/** A plane and an agent in good health, with the small troubles of every day. */
export const everyday: Readonly<Record<string, string>> = {
  [plane('ready')]: `1x${days}`,
  [plane('store_writable')]: `1x${days}`,
  [plane('store_commit_seconds_bucket', ',le="0.005"')]: `0+100x${days}`,
  [plane('store_commit_seconds_bucket', ',le="+Inf"')]: `0+100x${days}`,
  [plane('store_failed_groups_total')]: `0x${days}`,
  [plane('admission_queue')]: `3x${days}`,
  // Refused as much as always.
  [plane('refusals_total', ',code="TOKEN_EXPIRED"')]: `0+90x${days}`,
  // A boot storm is asked to retry later.
  [plane('refusals_total', ',code="BUSY"')]: `0x600 0+5000x20 100000x2000`,
  [plane('webhook_waiting')]: `0 2 0 2 0x${days}`,
  [plane('webhook_deliveries_total', ',outcome="given_up"')]: `0x${days}`,
  // An operator has acknowledged it.
  [plane('alerts', ',kind="spoof_suspected",severity="critical",state="acknowledged"')]: `1x${days}`,
  [plane('alerts', ',kind="stuck_enrollment",severity="warning",state="open"')]: `1x${days}`,
  [plane('task_queue_age_seconds')]: `0x100 1200x10 0x${days}`,
  [plane('task_results_total', ',outcome="completed"')]: `0+2x${days}`,
  [plane('task_results_total', ',outcome="failed"')]: `0x700 3x2400`,
  [plane('task_results_total', ',outcome="unknown"')]: `0x${days}`,
  [plane('server_certificate_not_after_seconds')]: `${60 * day}x${days}`,
  [plane('issuer_not_after_seconds', ',role="issuing"')]: `${97 * day}x${days}`,
  [plane('issuer_not_after_seconds', ',role="root"')]: `${3000 * day}x${days}`,
  [plane('certificates_overdue')]: `0x${days}`,
  [plane('node_conditions', ',condition="cert_expired"')]: `0x${days}`,
  [plane('node_conditions', ',condition="disk_full"')]: `4x${days}`,
  // A rack is rebuilt: rehearsed again within the day.
  [plane('recoverable_ratio')]: `1x600 0.92x600 1x2000`,
  [plane('channels_open')]: `100x100 90x100 100x2900`,
  [plane('recoveries_total', ',by="credential"')]: `0x100 3x100 4x2900`,
  [plane('recoveries_refused_total')]: `0x${days}`,
  [plane('second_holders_total')]: `0x${days}`,
  [plane('cert_expiry_min_seconds', inGroup)]: `40000x${days}`,
  [plane('agents_reporting', inGroup)]: `100x${days}`,
  [plane('agents_oldest_report_timestamp_seconds', inGroup)]: `0+60x${days}`,
  [plane('agents_program_cert_expiry_min_seconds', inGroup)]: `50000x${days}`,
  [plane('agents_program_outputs_failing', inGroup)]: `0x${days}`,
  [plane('agents_cert_renewal_attempts_total', inGroup)]: `0+1x${days}`,
  [plane('agents_cert_renewal_failures_total', `${inGroup},reason="endpoint_unreachable"`)]: `0x700 1x2400`,
  [plane('agents_recovery_enrollment_attempts_total', `${inGroup},reason="cert_expired"`)]: `0x700 1x2400`,
  [plane('agents_recovery_enrollment_success_total', inGroup)]: `0x700 1x2400`,
  [plane('agents_recovery_enrollment_failures_total', `${inGroup},reason="disk_full"`)]: `0x${days}`,
  [plane('agents_filesystem_available_min_bytes', `${inGroup},use="identity"`)]: `9000000000x${days}`,
  [plane('agents_local_diagnostic_write_failures_total', `${inGroup},reason="ENOSPC"`)]: `0x${days}`,
  [plane('agents_observability_dropped_records_total', `${inGroup},source="log",reason="too_many"`)]: `0x${days}`,
  [plane('agents_endpoint_profile_drift_total', inGroup)]: `0x700 1x2400`,
  [agent('cert_expiry_seconds')]: `50000x${days}`,
  [agent('program_cert_expiry_seconds', ',output="web"')]: `50000x${days}`,
  [agent('program_output_in_place', ',output="web"')]: `1x${days}`,
  [agent('last_successful_mtls_task_poll_timestamp')]: `0+60x${days}`,
  [agent('cert_renewal_attempts_total')]: `0x700 1x700 2x2000`,
  [agent('cert_renewal_failures_total', ',reason="endpoint_unreachable"')]: `0x700 1x2400`,
  [agent('recovery_enrollment_failures_total', ',reason="disk_full"')]: `0x${days}`,
  [agent('recovery_enrollment_attempts_total', ',reason="cert_expired"')]: `0x700 1x2400`,
  [agent('recovery_enrollment_success_total')]: `0x700 1x2400`,
  [agent('node_filesystem_available_bytes', ',mount="/"')]: `9000000000x${days}`,
  [agent('local_diagnostic_write_failures_total', ',reason="ENOSPC"')]: `0x${days}`,
  [agent('observability_dropped_records_total', ',source="log",reason="disk_pressure"')]: `0x${days}`,
  [agent('endpoint_profile_drift_total')]: `0x700 1x2400`,
}
