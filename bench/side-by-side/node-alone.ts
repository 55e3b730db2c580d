// The floor of any server on Node: TLS as the plane speaks it, a request that is read and parsed, an answer as long as that to an
// enrollment, and nothing decided, signed or kept.

import { createTlsServer } from '#platform/tls-server.ts'
import { listenTcp } from '#platform/http-server.ts'
import { localServerIdentity } from '../../test/process/local-tls-server.ts'

const identity = localServerIdentity()
const answer = JSON.stringify({ certificate_chain: 'x'.repeat(3000) })

const server = createTlsServer({ ...identity, clientRoots: null, rejectUnauthorized: true }, (request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (part: string) => (text += part))
  request.on('end', () => {
    JSON.parse(text)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
    response.end(answer)
  })
})

console.log(JSON.stringify({ port: await listenTcp(server, '127.0.0.1', 0), roots: identity.chainPem }))
