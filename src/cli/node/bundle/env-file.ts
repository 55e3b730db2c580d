import type { Bootstrap } from './bootstrap.ts'

/** For `EnvironmentFile=` and for shells; to be kept 0600. The agent reads MUSTER_JOIN. */
export const envFile = ({ nodeId, join }: Bootstrap): string =>
  [
    `# Muster: bootstrap of ${nodeId}. Holds a token that works once: keep it 0600, delete it after the enrollment.`,
    `MUSTER_NODE_ID=${nodeId}`,
    `MUSTER_JOIN=${join}`,
    '',
  ].join('\n')
