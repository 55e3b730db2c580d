import { parseIsoTime } from '#platform/clock.ts'
import { type TokenView, tokenApi } from '#wire/enrollment/token-api.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatAgo, formatSpan } from '#cli/kit/duration.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { renderHeadedTable, type Cell } from '#cli/kit/table.ts'

export const tokenList = async (cli: Cli, options: GlobalOptions & { node?: string }): Promise<void> => {
  const answer = await connect(cli, options).ask(tokenApi.list, { query: { node: options.node } })
  const nowMs = cli.clock.nowMs()
  printer(cli, options).answer(answer, (paint) =>
    renderHeadedTable(
      ['TOKEN', 'STATE', 'FOR', 'PROFILE', 'EXPIRES', 'CREATED BY', 'USED BY'],
      answer.tokens.map((token) => tokenRow(token, nowMs)),
      paint,
    ),
  )
}

/** A code in front of a sentence says it shortly. */
const stateOf = ({ state, why = null }: TokenView): string =>
  why === null ? state : `${state} (${why.split(':', 1)[0]})`

export const tokenRow = (token: TokenView, nowMs: number): Cell[] => {
  const expiresMs = parseIsoTime(token.expires_at) ?? nowMs
  return [
    token.id,
    { text: stateOf(token), colour: token.state === 'unused' ? 'green' : 'dim' },
    (token.node ?? 'any node') + (token.replace ? ' (replace)' : ''),
    token.profile,
    expiresMs > nowMs ? `in ${formatSpan(expiresMs - nowMs)}` : formatAgo(expiresMs, nowMs),
    token.created_by,
    token.used_by ?? '-',
  ]
}
