// Requests that nobody will handle. When a connection closes, Node ends every request it has read from it with an error of
// its own: for the thousand requests of one pipelined write that takes longer than reading them did. These classes let a
// server say which of them need no end.

import { IncomingMessage, ServerResponse } from 'node:http'

class DroppableRequest extends IncomingMessage {
  dropped = false
  override destroy(error?: Error): this {
    return this.dropped ? this : super.destroy(error)
  }
}

class DroppableResponse<R extends IncomingMessage> extends ServerResponse<R> {
  dropped = false
  override destroy(error?: Error): this {
    return this.dropped ? this : super.destroy(error)
  }
}

/** For the options of a server. */
export const droppable = { IncomingMessage: DroppableRequest, ServerResponse: DroppableResponse }

/** Only what was handed to nobody may be dropped: its holder would never hear that the connection is gone. */
export const dropRequest = (request: IncomingMessage, response: ServerResponse): void => {
  if (request instanceof DroppableRequest) request.dropped = true
  if (response instanceof DroppableResponse) response.dropped = true
}
