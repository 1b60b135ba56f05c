/** The files of a conversation: find, read, upload by drop, download. */
import { useState } from 'preact/hooks'
import { Blank } from '../parts/blank.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt, notify } from '../parts/notices.tsx'
import { saveFrom } from '../parts/save.ts'
import { FileContent, nameOf } from '../parts/file-content.tsx'
import type { ListedFile } from '../parts/file-content.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { texts } from '../state/preferences.ts'
import { size } from '../parts/amounts.ts'
import { visible } from '../text/visible.ts'

export function Files({ open }: { readonly open: OpenConversation }) {
  const { up, emptyFolder, dropHere, upload, findFile, noFile } = texts.value
  const [folder, setFolder] = useState('')
  const [file, setFile] = useState<ListedFile>()
  const [version, setVersion] = useState(0)
  const [q, setQ] = useState('')
  const list = useLoaded(
    (signal) => (q.trim() === '' ? listIn(open, folder, signal) : findIn(open, { q: q.trim(), path: folder }, signal)),
    [open.id, folder, version, q],
  )
  const send = async (files: FileList | null) => {
    if (!files) return
    await open.handle.files.upload(
      [...files].map((content) => ({ name: content.name, content })),
      { path: folder },
    )
    notify(texts.value.uploaded(files.length))
    setVersion(version + 1)
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    const files = event.dataTransfer?.files
    if (files && files.length > 0) attempt(() => send(files))
  }
  const choose = (entry: ListedFile) => {
    if (entry.type !== 'directory') return setFile(entry)
    setFolder(entry.path)
    return setQ('')
  }
  if (file) return <FileView open={open} file={file} close={() => setFile(undefined)} />
  return (
    <div class="page" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
      <div class="bar">
        {folder !== '' && (
          <button type="button" onClick={() => setFolder(folder.split('/').slice(0, -1).join('/'))}>
            ↑ {up}
          </button>
        )}
        <code>/{visible(folder)}</code>
        <input
          type="search"
          placeholder={findFile}
          aria-label={findFile}
          value={q}
          onInput={({ currentTarget }) => setQ(currentTarget.value)}
        />
        <label class="button">
          {upload}
          <input
            type="file"
            multiple
            class="unseen"
            onChange={({ currentTarget }) => attempt(() => send(currentTarget.files))}
          />
        </label>
        <span class="quiet wide">{dropHere}</span>
      </div>
      <WhenLoaded
        of={list}
        draw={(items) =>
          items.length === 0 ? (
            <Blank text={q.trim() === '' ? emptyFolder : noFile} />
          ) : (
            <ul class="files">
              {items.map((entry) => (
                <li key={entry.path}>
                  <button type="button" class="line" onClick={() => choose(entry)}>
                    <span class="shape" aria-hidden="true">
                      {entry.type === 'directory' ? '▸' : '·'}
                    </span>
                    <span class="name">{visible(q.trim() === '' ? nameOf(entry) : entry.path)}</span>
                    {entry.type === 'file' && entry.size !== undefined && (
                      <span class="quiet number">{size(entry.size)}</span>
                    )}
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      />
    </div>
  )
}

const listIn = async (open: OpenConversation, path: string, signal: AbortSignal): Promise<ListedFile[]> =>
  (await open.handle.files.list({ path, limit: 1000 }, { signal })).items

/** The pause after the last key, milliseconds. */
const PAUSE_MS = 250

async function findIn(
  open: OpenConversation,
  query: { readonly q: string; readonly path: string },
  signal: AbortSignal,
): Promise<ListedFile[]> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  signal.throwIfAborted()
  return (await open.handle.files.search({ ...query, limit: 200 }, { signal })).items
}

type ViewProps = { readonly open: OpenConversation; readonly file: ListedFile; readonly close: () => void }

function FileView({ open, file, close }: ViewProps) {
  const { download, close: closeText } = texts.value
  return (
    <div class="page">
      <div class="bar">
        <button type="button" onClick={close}>
          {closeText}
        </button>
        <code>{visible(file.path)}</code>
        {file.size !== undefined && <span class="quiet number">{size(file.size)}</span>}
        <button type="button" onClick={() => attempt(() => save(open, file))}>
          {download}
        </button>
      </div>
      <FileContent open={open} file={file} />
    </div>
  )
}

/** The browser downloads it, of any size: the page has nothing of it in memory, and the URL works once. */
async function save(open: OpenConversation, file: ListedFile): Promise<void> {
  saveFrom(await open.handle.files.link(file.path), nameOf(file))
}
