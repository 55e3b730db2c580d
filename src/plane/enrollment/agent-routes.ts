// The agent, for machines that fetch it and for operators who want to know which one they get.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { PlaneUrls } from '#plane/core/configuration.ts'
import { answer, serve, type CallOf, type FileAnswer, type Route } from '#plane/http/route.ts'
import { pathOf } from '#wire/core/endpoint.ts'
import { agentDownloadApi, agentExecutableApi, type AgentExecutableView } from '#wire/enrollment/agent-api.ts'
import { agentDownload, type Downloads } from '#plane/files/downloads.ts'
import type { AgentFile, AgentFiles } from './agent-files.ts'

export type AgentRouteParts = { readonly files: AgentFiles; readonly downloads: Downloads }

const readAgainAfterMs = 2000

export const agentDownloadRoutes = (parts: AgentRouteParts): readonly Route[] =>
  serve(agentDownloadApi, { download: async (call) => download(parts, call) })

const download = (
  { files, downloads }: AgentRouteParts,
  { params, principal }: CallOf<typeof agentDownloadApi.download>,
): FileAnswer<typeof agentDownloadApi.download.file.contentType> | Refusal => {
  const file = files.byDigest(params.digest)
  if (file === null) {
    if (!files.reading()) return refuse('AGENT_NOT_FOUND')
    return { ...refuse('UNAVAILABLE', 'the agents are being read'), retryAfterMs: readAgainAfterMs }
  }
  return {
    kind: 'file',
    contentType: agentDownloadApi.download.file.contentType,
    etag: `"${file.content.sha256}"`,
    bytes: file.content.bytes,
    begin: () => downloads.begin(file, principal, agentDownload),
  }
}

export const operatorAgentRoutes = (files: AgentFiles, urls: () => Pick<PlaneUrls, 'node'>): readonly Route[] =>
  serve(agentExecutableApi, {
    list: async () =>
      answer({
        folder: files.folder(),
        agents: files.all().map((file) => agentView(file, urls().node)),
        faults: files.faults(),
        reading: files.reading(),
      }),
  })

const agentView = ({ name, architecture, current, content }: AgentFile, planeUrl: string): AgentExecutableView => ({
  architecture,
  digest: `sha256:${content.sha256}`,
  bytes: content.bytes,
  url: `${planeUrl}${pathOf(agentDownloadApi.download, { digest: content.sha256 })}`,
  file: name,
  current,
})
