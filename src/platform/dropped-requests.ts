// Requests that no handler will get. When a connection closes, Node ends every request it has read from it with an error: for
// the thousand requests of one pipelined write that takes longer than reading them did. These classes let a server say
// which requests need no end.

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

/** Only a request that no handler has may be dropped: a handler would never learn that the connection is gone. */
export const dropRequest = (request: IncomingMessage, response: ServerResponse): void => {
  if (request instanceof DroppableRequest) request.dropped = true
  if (response instanceof DroppableResponse) response.dropped = true
}
