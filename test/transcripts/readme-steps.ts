// README.md, or another page, as a script: every block of commands in it (indented, as everywhere in the documents; a here-document in a block of `sh`, whose
// last line is then the last line also where the page is read as text), where it is run and what is to come of it. A comment before the
// block says so, which no reader of the page sees:
//
//     <!-- on gpu-002, terminal 1 -->                       ends with exit code 0; a text block below it is what it shows
//     <!-- on gpu-002, line 1 -->                           only that line of it
//     <!-- on gpu-002, terminal 1, stays until TEXT -->     goes on in that terminal, and has said TEXT
//     <!-- on gpu-002, terminal 1, after Ctrl-C, ... -->    what runs in that terminal is interrupted first
//     <!-- on gpu-002, again until it shows this -->        is asked again until the text block is true
//     <!-- on gpu-002, ends with 60 -->
//     <!-- not run: WHY -->
//
// Before a text block without commands: what the terminal has shown. In a text block `…` stands for any characters, alone on a line
// for any lines.

export type ReadmeStep = {
  readonly page: string
  readonly line: number
  readonly host: string
  /** Null: one of its own. */
  readonly terminal: string | null
  readonly afterCtrlC: boolean
  /** Null: the terminal has shown something more. */
  readonly command: string | null
  readonly expects:
    | { readonly kind: 'end'; readonly exit: number; readonly again: boolean }
    | { readonly kind: 'stay'; readonly until: string }
  /** As transcripts write it (match-lines.ts). */
  readonly shows: readonly string[]
}

/** `page`: what it is called in an error. */
export const readmeSteps = (text: string, page = 'README.md'): ReadmeStep[] => {
  const lines = text.split('\n')
  const steps: ReadmeStep[] = []
  let comment: { readonly line: number; readonly words: string } | null = null
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const words = /^<!-- (.*) -->$/.exec(line)?.[1]
    if (words !== undefined) {
      if (comment !== null) throw wrong(page, comment.line, 'is followed by no block')
      comment = { line: at + 1, words }
      continue
    }
    if (line === '') continue
    const commands = blockAt(lines, at)
    const shown = textAt(lines, commands === null ? at : nextLine(lines, commands.end))
    if (commands !== null && comment === null) throw wrong(page, at + 1, 'is a block of commands without a comment')
    if (comment === null) {
      // A block in which indentation is no command.
      if (line.startsWith('```')) at = shown?.end ?? lines.indexOf('```', at + 1)
      continue
    }
    if (!comment.words.startsWith('not run: ')) {
      if (commands === null && shown === null) throw wrong(page, comment.line, 'is followed by no block')
      steps.push(stepOf(page, comment, commands?.text ?? null, shown?.lines ?? []))
    }
    comment = null
    at = shown?.end ?? (commands?.end ?? at + 1) - 1
  }
  if (comment !== null) throw wrong(page, comment.line, 'is followed by no block')
  return steps
}

const wrong = (page: string, line: number, what: string): Error => new Error(`${page}:${line} ${what}`)

const indent = '    '

/** `end`: the first line after it. */
const blockAt = (lines: readonly string[], start: number): { readonly text: string; readonly end: number } | null => {
  if (lines[start] === '```sh') {
    const end = lines.indexOf('```', start)
    return { text: lines.slice(start + 1, end).join('\n'), end: end + 1 }
  }
  let end = start
  while (lines[end]?.startsWith(indent) === true) end++
  if (end === start) return null
  const block = lines.slice(start, end).map((line) => line.slice(indent.length))
  return { text: block.join('\n'), end }
}

const nextLine = (lines: readonly string[], from: number): number => {
  const at = lines.findIndex((line, index) => index >= from && line !== '')
  return at === -1 ? lines.length : at
}

/** `end`: its last line. */
const textAt = (lines: readonly string[], start: number): { readonly lines: string[]; readonly end: number } | null => {
  if (lines[start] !== '```text') return null
  const end = lines.indexOf('```', start)
  const shown = lines.slice(start + 1, end).map((line) => (line === '…' ? '...' : line.replaceAll('…', '{{.*}}')))
  return { lines: shown, end }
}

const stepOf = (
  page: string,
  { line, words }: { readonly line: number; readonly words: string },
  command: string | null,
  shows: readonly string[],
): ReadmeStep => {
  const parts = words.split(', ')
  const take = (shape: RegExp): string | null => {
    const at = parts.findIndex((part) => shape.test(part))
    const [part = ''] = at === -1 ? [] : parts.splice(at, 1)
    return at === -1 ? null : (shape.exec(part)?.[1] ?? '')
  }
  const host = take(/^on ([\w-]+)$/)
  const terminal = take(/^terminal (\d)$/)
  const only = take(/^line (\d)$/)
  const afterCtrlC = take(/^after Ctrl-C$/) !== null
  const until = take(/^stays until (.+)$/)
  const again = take(/^again until it shows this$/) !== null
  const exit = Number(take(/^ends with (\d+)$/) ?? 0)
  if (host === null || parts.length > 0) throw wrong(page, line, `is not understood: ${parts.join(', ') || words}`)
  const expects = until === null ? ({ kind: 'end', exit, again } as const) : ({ kind: 'stay', until } as const)
  const wanted = only === null ? command : (command?.split('\n')[Number(only) - 1] ?? null)
  return { page, line, host, terminal, afterCtrlC, command: wanted, expects, shows }
}
