// A request to another server that failed, whichever layer noticed it.

export class RequestFault<Code extends string = string> extends Error {
  readonly code: Code
  /** Nothing of what was asked has been done: it may be sent again as it is. */
  readonly isUndone: boolean

  constructor(message: string, code: Code, isUndone: boolean) {
    super(message)
    this.code = code
    this.isUndone = isUndone
  }
}
