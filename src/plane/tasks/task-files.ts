// The files that tasks bring to nodes: those of a folder of the plane, by digest, to a node that has a task which asks for them.

import { refuse, type Refusal } from '#domain/core/refusal.ts'
import type { Log } from '#platform/log.ts'
import type { Store } from '#plane/store/contract/store.ts'
import { taskFileDownload, type Downloads } from '#plane/files/downloads.ts'
import { openServedFolder, type FolderFile, type FolderRules, type ServedFolder } from '#plane/files/served-folder.ts'
import { serve, type CallOf, type FileAnswer, type Route } from '#plane/http/route.ts'
import { taskFileApi } from '#wire/tasks/task-file-api.ts'
import { dispatchedTo } from './dispatch.ts'

const mostFiles = 1000

const taskFileRules: FolderRules<FolderFile> = {
  ...{ one: 'a file of tasks', several: 'files of tasks', most: mostFiles },
  // Names that begin with a dot are those of files that are being written.
  chosen: (names) => names.filter((name) => !name.startsWith('.')).sort(),
  describe: (file) => file,
  faultOf: () => Promise.resolve(null),
}

/** `folder`: null where the plane serves none. */
export const openTaskFiles = (folder: string | null, log: Log): ServedFolder =>
  openServedFolder(folder === null ? [] : [folder], taskFileRules, log)

export type TaskFileParts = {
  readonly store: Pick<Store, 'list'>
  readonly files: ServedFolder
  readonly downloads: Downloads
}

const readAgainAfterMs = 2000

export const taskFileRoutes = (parts: TaskFileParts): readonly Route[] =>
  serve(taskFileApi, { download: (call) => download(parts, call) })

const download = async (
  { store, files, downloads }: TaskFileParts,
  { params, principal }: CallOf<typeof taskFileApi.download>,
): Promise<FileAnswer<typeof taskFileApi.download.file.contentType> | Refusal> => {
  const asked = (await dispatchedTo(store, principal)).some(
    ({ type, parameters }) => type === 'fetch-file' && parameters['sha256'] === params.digest,
  )
  // Answered alike: a node learns nothing of files that are not for it.
  if (!asked) return refuse('TASK_FILE_NOT_FOUND')
  const file = files.byDigest(params.digest)
  if (file === null) {
    if (!files.reading()) return refuse('TASK_FILE_NOT_FOUND')
    return { ...refuse('UNAVAILABLE', 'the files are being read'), retryAfterMs: readAgainAfterMs }
  }
  return {
    kind: 'file',
    contentType: taskFileApi.download.file.contentType,
    etag: `"${file.content.sha256}"`,
    bytes: file.content.bytes,
    begin: () => downloads.begin(file, principal, taskFileDownload),
  }
}
