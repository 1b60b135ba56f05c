/** The files of a conversation: find, read, upload by drop, download. */
import { useRef, useState } from 'preact/hooks'
import { Blank } from '../parts/blank.tsx'
import { useLastChange } from '../parts/last-change.ts'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import type { RowPage } from '../parts/further-pages.ts'
import { useFurtherPages } from '../parts/further-pages.ts'
import { attempt, notify } from '../parts/notices.tsx'
import { saveFrom } from '../parts/save.ts'
import { FileContent, nameOf } from '../parts/file-content.tsx'
import type { ListedFile } from '../parts/file-content.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { texts } from '../state/preferences.ts'
import { size } from '../parts/amounts.ts'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import { visible } from '../text/visible.ts'

export function Files({ open }: { readonly open: OpenConversation }) {
  const { up, emptyFolder, dropHere, findFile, noFile, moreFiles, tabs } = texts.value
  const [folder, setFolder] = useState('')
  const [file, setFile] = useState<ListedFile>()
  const [version, setVersion] = useState(0)
  const [q, setQ] = useState('')
  const { list, page, more } = useFiles(open, { folder, words: q.trim(), version })
  const send = async (files: readonly File[]) => {
    await open.handle.files.upload(
      files.map((content) => ({ name: content.name, content })),
      { path: folder },
    )
    notify(texts.value.uploaded(files.length))
    setVersion((before) => before + 1)
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    const files = [...(event.dataTransfer?.files ?? [])]
    if (files.length > 0) attempt(() => send(files))
  }
  const choose = (entry: ListedFile) => {
    if (entry.type !== 'directory') return setFile(entry)
    setFolder(entry.path)
    return setQ('')
  }
  if (file) return <FileView open={open} file={file} close={() => setFile(undefined)} />
  return (
    <div class="page filled files" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
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
        <UploadButton send={send} />
        <span class="quiet wide">{dropHere}</span>
      </div>
      {page?.isCut && (
        <p class="quiet" role="status">
          {moreFiles(page.rows.length)}
        </p>
      )}
      <WhenLoaded
        of={{ ...list, value: page ?? undefined }}
        draw={({ rows, isFound }) =>
          rows.length === 0 ? (
            <Blank text={isFound ? noFile : emptyFolder} />
          ) : (
            <VirtualRows
              rows={rows}
              keyOf={({ path }) => path}
              estimate={33}
              label={tabs.files}
              onEnd={more}
              draw={(entry) => <Entry entry={entry} isFound={isFound} choose={choose} />}
            />
          )
        }
      />
    </div>
  )
}

type FileQuery = { readonly folder: string; readonly words: string; readonly version: number }

/** Reads the files of a directory, or those that have these words in their names. */
function useFiles(open: OpenConversation, { folder, words, version }: FileQuery) {
  const lastChange = useLastChange(open)
  // Who has scrolled through several pages would lose the place.
  const isLong = useRef(false)
  const list = useLoaded(
    (signal) =>
      words === '' ? listIn(open, { path: folder }, signal) : findIn(open, { q: words, path: folder }, signal),
    [open.id, folder, version, words],
    isLong.current ? undefined : lastChange,
  )
  isLong.current = list.value?.next !== undefined
  const { page, more } = useFurtherPages(list.value, (before) => listIn(open, { path: folder, page_id: before.next }))
  return { list, page, more }
}

function UploadButton({ send }: { readonly send: (files: readonly File[]) => Promise<void> }) {
  const take = (field: HTMLInputElement) => {
    const files = [...(field.files ?? [])]
    // The same file can be chosen again, as after a fault.
    field.value = ''
    attempt(() => send(files))
  }
  return (
    <label class="button">
      {texts.value.upload}
      <input type="file" multiple class="unseen" onChange={({ currentTarget }) => take(currentTarget)} />
    </label>
  )
}

type EntryProps = {
  readonly entry: ListedFile
  readonly isFound: boolean
  readonly choose: (entry: ListedFile) => void
}

function Entry({ entry, isFound, choose }: EntryProps) {
  return (
    <button type="button" class="line" onClick={() => choose(entry)}>
      <span class="shape" aria-hidden="true">
        {entry.type === 'directory' ? '▸' : ''}
      </span>
      <span class="name">
        {visible(isFound ? entry.path : nameOf(entry))}
        {entry.type === 'directory' && '/'}
      </span>
      {entry.type === 'file' && entry.size !== undefined && <span class="quiet number">{size(entry.size)}</span>}
    </button>
  )
}

/** `isCut`: there may be more that were not found. */
type FilePage = RowPage<ListedFile> & { readonly isFound: boolean; readonly isCut: boolean }

async function listIn(
  open: OpenConversation,
  query: { readonly path: string; readonly page_id?: string | undefined },
  signal?: AbortSignal,
): Promise<FilePage> {
  const { items, next_page_id } = await open.handle.files.list({ ...query, limit: 1000 }, { signal })
  return { rows: items, next: next_page_id ?? undefined, isFound: false, isCut: false }
}

/** The pause after the last key, milliseconds. */
const PAUSE_MS = 250

async function findIn(
  open: OpenConversation,
  query: { readonly q: string; readonly path: string },
  signal: AbortSignal,
): Promise<FilePage> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  signal.throwIfAborted()
  const { items, truncated } = await open.handle.files.search({ ...query, limit: 200 }, { signal })
  return { rows: items, isFound: true, isCut: truncated }
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
        <code class="as-written">{visible(file.path)}</code>
        {file.size !== undefined && <span class="quiet number">{size(file.size)}</span>}
        <button type="button" class="last" onClick={() => attempt(() => save(open, file))}>
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
