import { systemReport, writeHardwareFile } from '#agent/core/hardware-report.ts'
import { errno } from '#platform/files.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { printer } from '#cli/kit/print.ts'
import { printableJson } from '#cli/kit/printable.ts'

export const agentReadHardware = (cli: Cli, options: GlobalOptions & { readonly out?: string }): Promise<void> => {
  const { hardware_identity, hardware_facts } = systemReport()
  const report = { ...hardware_identity, facts: hardware_facts }
  const print = printer(cli, options)
  if (options.out !== undefined) {
    write(options.out)
    print.note(`written to ${options.out}`)
  }
  if (options.out === undefined || print.json) print.answer(report, () => [printableJson(report, 2)])
  return Promise.resolve()
}

const write = (file: string): void => {
  try {
    writeHardwareFile(file)
  } catch (error) {
    throw new Failure({
      exit: exitCodes.notAllowed,
      code: 'NOT_PERMITTED',
      sentence: `${file} cannot be written.`,
      detail: errno(error),
      next: 'Run this as root, or give --out a place you may write to',
    })
  }
}
