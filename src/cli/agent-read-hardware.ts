import { hardwareReport, writeHardwareFile } from '#agent/hardware-report.ts'
import type { Cli, GlobalOptions } from './cli.ts'
import { printer } from './print.ts'
import { printableJson } from './printable.ts'

export const agentReadHardware = (cli: Cli, options: GlobalOptions & { readonly out?: string }): Promise<void> => {
  if (options.out === undefined) {
    const { hardware_identity, hardware_facts } = hardwareReport(null)
    const report = { ...hardware_identity, facts: hardware_facts }
    printer(cli, options).answer(report, () => [printableJson(report, 2)])
  } else {
    writeHardwareFile(options.out)
  }
  return Promise.resolve()
}
