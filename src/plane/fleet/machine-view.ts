import type { HardwareProfile } from '#domain/core/hardware-profile.ts'
import type { Node } from '#domain/core/node.ts'
import { skuOf } from '#domain/fleet/sku.ts'
import { isoTime } from '#platform/clock.ts'
import type { HardwareProfileView, MachineView } from '#wire/fleet/hardware-api.ts'

export const hardwareProfileView = (profile: HardwareProfile): HardwareProfileView => ({
  tag: profile.tag,
  description: profile.description,
  firmware: profile.firmware,
  tags: [...profile.tags],
  slots: profile.slots,
  sku: profile.sku,
  created_at: isoTime(profile.createdAtMs),
  created_by: profile.createdBy,
})

export const machineView = ({ id, machine }: Node, profiles: readonly HardwareProfile[]): MachineView => {
  const { sku, profile, why } = skuOf(machine, profiles)
  const { readiness } = machine
  return {
    node: id,
    tags: [...machine.tags],
    firmware: machine.firmware,
    readiness:
      readiness === null
        ? null
        : {
            ready: readiness.ready,
            evidence: { ...readiness.evidence },
            by: readiness.by,
            at: isoTime(readiness.atMs),
          },
    slots: machine.slots.map(({ name, state, detail, sinceMs }) => ({ name, state, detail, since: isoTime(sinceMs) })),
    sku,
    hardware_profile: profile,
    why: [...why],
  }
}
