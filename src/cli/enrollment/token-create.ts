import { parseJoinString } from '#wire/core/join-string.ts'
import { type CreateTokenRequest, tokenApi } from '#wire/enrollment/token-api.ts'
import { parseIsoTime } from '#platform/clock.ts'
import type { Cli, GlobalOptions } from '#cli/kit/cli.ts'
import { formatSpan } from '#cli/kit/duration.ts'
import { exitCodes } from '#cli/kit/exit-codes.ts'
import { Failure } from '#cli/kit/failure.ts'
import { durationOption } from '#cli/kit/duration-option.ts'
import { nodeName } from '#cli/kit/node-name.ts'
import { connect } from '#cli/kit/operator-client.ts'
import { printer } from '#cli/kit/print.ts'

type Options = GlobalOptions & {
  readonly node?: string
  readonly replace?: boolean
  readonly expires?: string
  readonly profile?: string
}

export const tokenCreate = async (cli: Cli, options: Options): Promise<void> => {
  const request: CreateTokenRequest = {
    ...(options.node === undefined ? {} : { node: nodeName(options.node) }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.replace === true ? { replace: true } : {}),
    ...(options.expires === undefined ? {} : { expires_ms: durationOption('--expires', options.expires) }),
  }
  const answer = await connect(cli, options).ask(tokenApi.create, {
    body: request,
    about: { ID: options.node ?? 'ID', PROFILE: options.profile ?? 'PROFILE' },
  })
  if (parseJoinString(answer.join) === null) throw notAJoinString()

  const { token } = answer
  const print = printer(cli, options)
  print.answer(answer, () => [answer.join])
  const spanMs = (parseIsoTime(token.expires_at) ?? 0) - cli.clock.nowMs()
  const whose = token.node === null ? 'one node of the domain' : `node ${token.node}`
  if (answer.registered) print.note(`registered ${token.node} with profile ${token.profile}`)
  // Half a second of grace, or a token of 30 minutes would be announced with 29.
  print.note(`token ${token.id} for ${whose}, profile ${token.profile}, good once, for ${formatSpan(spanMs + 500)}`)
  if (cli.out.isTerminal && !print.json) {
    print.note('next: on the machine, save that line to a file and run: muster agent run --join-file FILE')
  }
}

const notAJoinString = (): Failure =>
  new Failure({
    exit: exitCodes.fault,
    code: 'UNEXPECTED_ANSWER',
    sentence: 'The plane answered something that is not a join string.',
    next: 'Compare the versions: muster version, here and on the plane',
  })
