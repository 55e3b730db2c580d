// Firmware profiles for cloud-init (R-190): what a machine is set up with at its first start, before its agent joins. A hardware
// profile asks for one by its name, and an adapter or a person reports that the machine runs it (`muster node machine`).

export type FirmwareProfile = {
  readonly name: string
  readonly description: string
  /** By the names of Debian and Ubuntu. */
  readonly packages: readonly string[]
  /** Added to the command line of the kernel; they need a restart. */
  readonly kernelParameters: readonly string[]
  /** Loaded at every start. */
  readonly modules: readonly string[]
  readonly services: readonly string[]
}

export const firmwareProfiles: readonly FirmwareProfile[] = [
  {
    name: 'slice-vm',
    description: 'slices are virtual machines: KVM, devices passed through by IOMMU and VFIO, Open vSwitch, libvirt',
    packages: ['qemu-system-x86', 'ovmf', 'libvirt-daemon-system', 'libvirt-clients', 'openvswitch-switch'],
    // Of the two vendors the kernel takes the one it runs on.
    kernelParameters: ['intel_iommu=on', 'amd_iommu=on', 'iommu=pt'],
    modules: ['kvm', 'vfio', 'vfio_iommu_type1', 'vfio_pci'],
    services: ['openvswitch-switch.service', 'libvirtd.service'],
  },
  {
    name: 'baremetal',
    description: 'the whole machine is one slice: nothing is added to it',
    packages: [],
    kernelParameters: [],
    modules: [],
    services: [],
  },
]

type FileToWrite = { readonly path: string; readonly content: string; readonly permissions: string }

/** Tells what the machine was set up with, also to the one who looks at it without a plane. */
const nameFile = '/etc/muster/firmware-profile'
const modulesFile = '/etc/modules-load.d/60-muster-firmware.conf'
/** Read by update-grub on Debian and Ubuntu, after the file that a distribution brings. */
const grubFile = '/etc/default/grub.d/60-muster-firmware.cfg'

export const firmwareFiles = ({ name, kernelParameters, modules }: FirmwareProfile): readonly FileToWrite[] => [
  { path: nameFile, content: `${name}\n`, permissions: '0644' },
  ...(modules.length === 0 ? [] : [{ path: modulesFile, content: lines(modules), permissions: '0644' }]),
  ...(kernelParameters.length === 0
    ? []
    : [
        {
          path: grubFile,
          content: `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ${kernelParameters.join(' ')}"\n`,
          permissions: '0644',
        },
      ]),
]

/** Before the agent joins. Each is a program and its arguments: no shell reads them. */
export const firmwareCommands = ({ kernelParameters, services }: FirmwareProfile): readonly (readonly string[])[] => [
  ...(kernelParameters.length === 0 ? [] : [['update-grub']]),
  ...(services.length === 0 ? [] : [['systemctl', 'enable', '--now', ...services]]),
]

/** A machine joins first and restarts then: what it joined with is used up, and its identity outlives the restart. */
export const firmwareRestart = ({ name, kernelParameters }: FirmwareProfile): readonly string[] =>
  kernelParameters.length === 0
    ? []
    : [
        'power_state:',
        '  mode: reboot',
        `  message: ${JSON.stringify(`the firmware profile ${name} needs a restart`)}`,
        // Not again where the image or an earlier start has them already.
        `  condition: ${JSON.stringify(kernelParameters.map((one) => `! grep -qw -- ${one} /proc/cmdline`).join(' || '))}`,
      ]

const lines = (words: readonly string[]): string => words.map((word) => `${word}\n`).join('')
