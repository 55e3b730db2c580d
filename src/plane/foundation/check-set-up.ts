// What of a plane's configuration cannot work on this machine, found without starting anything: for `muster plane --check-config`.

import * as path from 'node:path'
import { errno } from '#platform/files.ts'
import { formatIp, parseIp } from '#platform/ip-address.ts'
import { folderFault, pathExists } from '#platform/paths.ts'
import { faultOfServedFolder } from '#platform/served-file.ts'
import { systemRandom } from '#platform/random.ts'
import { ownAddresses } from '#platform/this-process.ts'
import { listenersOf, listenWarning, type PlaneConfig } from '#plane/config/config.ts'
import { credentialName, findSealingKey, refuseExposed } from '#plane/keys/sealing-key.ts'
import { readWebhookFiles } from '#plane/webhook/webhook-files.ts'

export type SetUpFaults = {
  /** The plane would not start, or not do what it is set up for. */
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

/** As the user who asks sees the files: the user of the service may have other rights. */
export const checkSetUp = (config: PlaneConfig): SetUpFaults => {
  const seal = checkSealingKey(config)
  const problems = [
    folderFault(config.dataFolder),
    config.rootOut === null ? null : folderFault(path.resolve(config.rootOut)),
    config.issuerKey === 'memory' && config.rootPathLen === 1
      ? '--issuer-key memory needs a root with --root-path-length 2'
      : null,
    config.alertWebhook === null ? null : textOrNull(readWebhookFiles(config.alertWebhook)),
  ]
  return {
    problems: [...problems.filter((problem) => problem !== null), ...seal.problems],
    warnings: [
      ...seal.warnings,
      ...listenWarning(config),
      ...foreignAddresses(config),
      ...silentStatus(config),
      ...agentsWarning(config),
    ],
  }
}

/** No fault: an address may come to a machine later, as that of a failover does. */
const foreignAddresses = (config: PlaneConfig): readonly string[] => {
  const own = ownAddresses()
  return listenersOf(config).flatMap(({ option, listen: { host } }) => {
    const bytes = parseIp(host)
    const isHere = bytes === null || /^(0\.0\.0\.0|::|127\..*)$/.test(host) || own.includes(formatIp(bytes))
    return isHere ? [] : [`${option}: ${host} is no address of this machine now`]
  })
}

const silentStatus = ({ statusUrl, statusListen }: PlaneConfig): readonly string[] =>
  statusUrl !== null && statusListen === null
    ? [`certificates name ${statusUrl}, and this plane has no listener for it (--status-listen off)`]
    : []

/** A plane without agents starts, and hands none out. */
const agentsWarning = ({ handedOut }: PlaneConfig): readonly string[] => {
  const [asked, ...others] = handedOut.agents
  const fault = asked === undefined || others.length > 0 ? null : faultOfServedFolder(asked)
  return fault === null ? [] : [`no agent is handed out: ${fault}`]
}

const textOrNull = (read: unknown): string | null => (typeof read === 'string' ? read : null)

const beside =
  'the sealing key is stored beside the keys that it seals, so it protects nothing: put it elsewhere and name it with --seal-key'

/** systemd shows its credentials to the process of the unit alone. */
const onlyUnit =
  'the sealing key is a credential of the unit, which this command cannot see: whether it is there is not checked'
const unseen = `no sealing key is named. Under a unit that hands over the credential ${credentialName}, as muster-plane.service does, the plane uses that one, and this command cannot see it; without it ${beside}`

const checkSealingKey = ({ dataFolder, sealKeyFile, credentialsFolder }: PlaneConfig): SetUpFaults => {
  // Without a file of its own one would be made now.
  if (sealKeyFile === null) {
    const isCredential = credentialsFolder !== null && pathExists(path.join(credentialsFolder, credentialName))
    return { problems: [], warnings: isCredential ? [] : [credentialsFolder === null ? unseen : beside] }
  }
  if (sealKeyFile.startsWith('/run/credentials/') && credentialsFolder === null)
    return { problems: [], warnings: [onlyUnit] }
  try {
    const found = findSealingKey({ dataFolder, keyFile: sealKeyFile, credentialsFolder }, systemRandom)
    refuseExposed(found, dataFolder, credentialsFolder)
    const isGroup = found.protection === 'group'
    const warnings = isGroup ? [`the group of ${sealKeyFile} can read the sealing key`] : []
    return { problems: [], warnings: found.protection === 'beside' ? [beside] : warnings }
  } catch (error) {
    return { problems: [error instanceof Error ? error.message : (errno(error) ?? String(error))], warnings: [] }
  }
}
