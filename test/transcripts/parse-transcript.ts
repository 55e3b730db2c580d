// A transcript is Markdown that a person can follow. In its `console` blocks every line with `$ ` is a command; the
// lines below it are what it says:
//
//     text        a line on standard output; {{...}} holds a regular expression
//     ...         any lines, or none
//     2> text     a line on standard error; others may stand around it
//     [exit 3]    how it ends, where that is not 0
//
// A command that ends in ` &` goes on; the next one begins when it has said what stands below it.

export type Step = {
  readonly line: number
  readonly command: string
  readonly background: boolean
  readonly stdout: readonly string[]
  readonly stderr: readonly string[]
  readonly exit: number
}

export const parseTranscript = (text: string): Step[] => {
  const steps: Step[] = []
  let inside = false
  for (const [at, line] of text.split('\n').entries()) {
    if (line.startsWith('```')) inside = !inside && line.trim() === '```console'
    else if (inside && line.startsWith('$ ')) steps.push(stepOf(line.slice(2), at + 1))
    else if (inside) steps.push(expecting(steps.pop(), line, at + 1))
  }
  return steps
}

const stepOf = (command: string, line: number): Step => ({
  line,
  command: command.replace(/ &$/, ''),
  background: command.endsWith(' &'),
  stdout: [],
  stderr: [],
  exit: 0,
})

const expecting = (step: Step | undefined, line: string, at: number): Step => {
  if (step === undefined) throw new Error(`line ${at} expects something before any command`)
  const exit = /^\[exit (\d+)\]$/.exec(line)?.[1]
  if (exit !== undefined) return { ...step, exit: Number(exit) }
  if (line.startsWith('2> ')) return { ...step, stderr: [...step.stderr, line.slice(3)] }
  return { ...step, stdout: [...step.stdout, line] }
}
