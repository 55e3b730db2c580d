// `muster token`: what a machine is invited with.

import { Option, type Command } from 'commander'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { lists, noun, performs, plans, verb } from '#cli/kit/verb.ts'
import { counted } from '#domain/core/in-words.ts'
import { parseJoinString } from '#wire/core/join-string.ts'
import { type CreateTokenRequest, tokenApi, tokenStates, type TokenView } from '#wire/enrollment/token-api.ts'
import { parseIsoTime } from '#platform/clock.ts'
import { formatSpan, formatAgo } from '#cli/kit/duration.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure, usageFailure } from '#cli/kit/failure.ts'
import { durationOption, nodeName } from '#cli/kit/arguments.ts'
import { localAddressIn, localWarning } from '#cli/kit/local-address.ts'
import { connect, everyPage, type OperatorClient } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'
import { showList, type Column, type ListOptions } from '#cli/kit/list.ts'
import { withPlan, type PlanOptions } from '#cli/plans/plan.ts'
import { printable } from '#cli/kit/printable.ts'

export const declareToken = (token: Command, cli: Cli): void => {
  noun(token, [['muster token create --node gpu-001', '']])

  const create = verb(
    token,
    'create',
    'Print a join string, alone on standard output; the only time its secret is shown',
    [
      ['muster token create --node gpu-001', 'registers gpu-001 if it is not known'],
      ['muster token create --node gpu-001 --replace', 'for a machine that was reinstalled while active'],
      ['muster token create --profile mesh-paas --expires 1h', 'a token of the domain: whichever machine brings it'],
      ['muster token create --node gpu-001 | ssh gpu-001 sudo tee /etc/muster/join >/dev/null', ''],
    ],
  )
    .option('--node <id>', 'the node it is for; without it, a token of the domain')
    .option('--replace', 'may take the place of the node while it is active')
    .option('--expires <duration>', 'how long it is good for, such as 30m (default: the profile says; at most 24h)')
    .option('--profile <name>', "profile of the node it registers (default: the domain's)")
  performs(cli, create, tokenCreate)

  const list = verb(token, 'list', 'List tokens, newest first; never their secrets', [
    ['muster token list', ''],
    ['muster token list --node gpu-001', ''],
    ['muster token list --state unused', 'which can still let a machine in'],
  ])
    .option('--node <id>', 'only tokens for this node')
    .addOption(new Option('--state <state>', 'only tokens in this state').choices(tokenStates))
  performs(cli, lists(list, tokenColumns(0)), tokenList)

  const revoke = verb(token, 'revoke [id]', 'Withdraw a token that has not been used', [
    ['muster token revoke 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5', 'an id as token list shows it'],
    ['muster token revoke 01JCQ7Z6W3M8', 'or its beginning, where no other begins so'],
    ['muster token revoke 01JCQ7Z6W3M8X9Y0Z1A2B3C4D5 --plan', 'who could not join without it'],
  ])
  plans(revoke)
  performs(cli, revoke, tokenRevoke)
}

type Options = GlobalOptions & {
  readonly node?: string
  readonly replace?: boolean
  readonly expires?: string
  readonly profile?: string
}

const tokenCreate = async (cli: Cli, options: Options): Promise<void> => {
  const request: CreateTokenRequest = {
    ...(options.node === undefined ? {} : { node: nodeName(options.node) }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.replace === true ? { replace: true } : {}),
    ...(options.expires === undefined ? {} : { expires_ms: durationOption('--expires', options.expires) }),
  }
  const plane = connect(cli, options)
  const answer = await plane.ask(tokenApi.create, {
    body: request,
    about: { ID: options.node ?? 'ID', PROFILE: options.profile ?? 'PROFILE' },
  })
  if (parseJoinString(answer.join) === null) throw notAJoinString()

  const { token } = answer
  const print = printer(cli, options)
  print.answer(answer, () => [answer.join])
  // Both by the plane's clock: the one here may be set differently, and the answer may have taken a while.
  const spanMs = (parseIsoTime(token.expires_at) ?? 0) - (parseIsoTime(token.created_at) ?? 0)
  const whose = token.node === null ? 'one node of the domain' : `node ${token.node}`
  if (answer.registered) print.note(`registered ${token.node} with profile ${token.profile}`)
  print.note(`token ${token.id} for ${whose}, profile ${token.profile}, good once, for ${formatSpan(spanMs)}`)
  const others = await otherLiveTokens(plane, token)
  if (others > 0) {
    print.note(
      `${counted(others, 'earlier token')} for ${whose} can still be used: muster token list --node ${token.node}`,
    )
  }
  const local = localAddressIn(answer.join)
  if (local !== null) print.note(localWarning(local))
  if (cli.out.isTerminal && !print.structured) {
    print.note('next: on the machine, save that line to a file and run: muster agent run --join-file FILE')
  }
}

/** A token does not void the ones before it. An answer to this is worth less than the token: without one nothing is said. */
const otherLiveTokens = async (plane: OperatorClient, { id, node }: TokenView): Promise<number> => {
  if (node === null) return 0
  const answer = await plane.tryAsk(tokenApi.list, { query: { node } }).catch(() => null)
  if (answer === null || answer instanceof Failure) return 0
  return answer.tokens.filter((other) => other.id !== id && ['unused', 'bound'].includes(other.state)).length
}

const notAJoinString = (): Failure =>
  new Failure({
    exit: exitCodes.fault,
    code: 'UNEXPECTED_ANSWER',
    sentence: 'The plane answered something that is not a join string.',
    next: 'Compare the versions: muster version, here and on the plane',
  })

const tokenList = async (
  cli: Cli,
  options: ListOptions & { node?: string; state?: TokenView['state'] },
): Promise<void> => {
  const { node, state } = options
  const all = await everyToken(connect(cli, options), node)
  const items = all.filter((token) => state === undefined || token.state === state)
  showList(cli, options, { items, columns: tokenColumns(cli.clock.nowMs()), body: (tokens) => ({ tokens }) })
  if (all.length === 0) printer(cli, options).note('no tokens; make one: muster token create --node ID')
  else if (items.length === 0) printer(cli, options).note('no such tokens; all: muster token list')
}

const everyToken = (plane: OperatorClient, node?: string): Promise<TokenView[]> =>
  everyPage(
    async (after) => {
      const { tokens, next = null } = await plane.ask(tokenApi.list, { query: { node, after } })
      return { tokens, next }
    },
    ({ tokens }) => tokens,
  )

/** A code in front of a sentence says it shortly. */
const stateOf = ({ state, why = null }: TokenView): string =>
  why === null ? state : `${state} (${why.split(':', 1)[0]})`

const expiry = (expiresMs: number, nowMs: number): string =>
  expiresMs > nowMs ? `in ${formatSpan(expiresMs - nowMs)}` : formatAgo(expiresMs, nowMs)

const tokenColumns = (nowMs: number): readonly Column<TokenView>[] => [
  { name: 'token', cell: ({ id }) => id },
  {
    name: 'state',
    cell: (token) => ({ text: stateOf(token), colour: token.state === 'unused' ? 'green' : 'dim' }),
    value: ({ state }) => state,
  },
  {
    name: 'for',
    cell: ({ node, replace }) => (node ?? 'any node') + (replace ? ' (replace)' : ''),
    value: ({ node }) => node,
  },
  { name: 'profile', cell: ({ profile }) => profile },
  {
    name: 'expires',
    cell: (token) => (isOver(token) ? '' : expiry(parseIsoTime(token.expires_at) ?? nowMs, nowMs)),
    value: (token) => (isOver(token) ? null : token.expires_at),
  },
  { name: 'created-by', cell: ({ created_by: by }) => by },
  { name: 'used-by', cell: ({ used_by: by }) => by ?? '' },
  { name: 'created', cell: ({ created_at: at }) => at, wide: true },
]

/** What has ended otherwise does not expire any more. */
const isOver = ({ state }: TokenView): boolean => state === 'used' || state === 'revoked'

const tokenRevoke = withPlan(
  'revoke-token',
  (_options: PlanOptions, id: string | undefined) => ({ kind: 'revoke-token' as const, token: named(id) }),
  async (cli: Cli, options: PlanOptions, id: string | undefined) => {
    const plane = connect(cli, options)
    const known = async () => (await everyToken(plane)).map((one) => one.id)
    const token = await plane.ask(tokenApi.revoke, { params: { id: await wholeId(named(id), known) } })
    printer(cli, options).answer(token, () => [`token ${printable(token.id)} ${token.state}`])
  },
)

const named = (id: string | undefined): string => {
  if (id === undefined) throw usageFailure('Which token?', 'muster token revoke ID, or --apply PLAN')
  return id
}

const idLength = 26

/** The id that begins with what was given. One that no token has stays as it is: the plane says that there is none. */
const wholeId = async (given: string, known: () => Promise<readonly string[]>): Promise<string> => {
  if (given.length >= idLength) return given
  const [first, ...others] = (await known()).filter((id) => id.startsWith(given.toUpperCase()))
  if (first === undefined) return given
  if (others.length === 0) return first
  throw usageFailure(
    `${others.length + 1} ids begin with ${given}: ${[first, ...others].slice(0, 3).join(', ')}.`,
    'Give more of the id; see: muster token list',
  )
}
