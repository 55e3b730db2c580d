// Files that tasks bring to nodes.

import { Type } from 'typebox'
import { endpoint } from '#wire/core/endpoint.ts'
import { closed, NodeIdText } from '#wire/core/shapes.ts'

/** SHA-256 of the bytes as they are served, hex. */
const digestShape = '^[0-9a-f]{64}$'

export const taskFileApi = {
  download: endpoint({
    method: 'GET',
    path: '/v1/nodes/:id/task-files/:digest',
    access: 'node-itself',
    file: { contentType: 'application/octet-stream' },
    summary: 'A file that a task of this node asks for, by the SHA-256 of its bytes',
    params: Type.Object({ id: NodeIdText, digest: Type.String({ pattern: digestShape }) }, closed),
  }),
}
