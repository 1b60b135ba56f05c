/** The files of a conversation: find, read, upload by drop, download. */
import { useState } from 'preact/hooks'
import type { FileEntry } from '../../contract/files.ts'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt, notify } from '../parts/notices.tsx'
import { saveFrom } from '../parts/save.ts'
import { Output } from '../parts/output.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { texts } from '../state/preferences.ts'
import { size } from '../parts/amounts.ts'
import { visible } from '../text/visible.ts'

const MAX_SHOWN_BYTES = 500_000

export function Files({ open }: { readonly open: OpenConversation }) {
  const { up, emptyFolder, dropHere, upload } = texts.value
  const [folder, setFolder] = useState('')
  const [file, setFile] = useState<FileEntry>()
  const [version, setVersion] = useState(0)
  const list = useLoaded(
    (signal) => open.handle.files.list({ path: folder, limit: 1000 }, { signal }).then(({ items }) => items),
    [open.id, folder, version],
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
  const choose = (entry: FileEntry) => {
    if (entry.type === 'directory') return setFolder(entry.path)
    return setFile(entry)
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
            <p class="quiet">{emptyFolder}</p>
          ) : (
            <ul class="files">
              {items.map((entry) => (
                <li key={entry.path}>
                  <button type="button" class="line" onClick={() => choose(entry)}>
                    <span class="shape" aria-hidden="true">
                      {entry.type === 'directory' ? '▸' : '·'}
                    </span>
                    <span class="name">{visible(nameOf(entry))}</span>
                    {entry.type === 'file' && <span class="quiet number">{size(entry.size)}</span>}
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

const nameOf = ({ path }: FileEntry): string => path.split('/').at(-1) ?? path

/** Undefined for a file whose name has none: it may have the colours of a terminal. */
const endingOf = (entry: FileEntry): string | undefined => /\.(\w+)$/.exec(nameOf(entry))?.[1]

type ViewProps = { readonly open: OpenConversation; readonly file: FileEntry; readonly close: () => void }

function FileView({ open, file, close }: ViewProps) {
  const { tooLarge, download, close: closeText } = texts.value
  const isSmall = file.size <= MAX_SHOWN_BYTES
  const content = useLoaded(
    async (signal) => (isSmall ? await (await open.handle.files.get(file.path, { signal })).text() : undefined),
    [open.id, file.path],
  )
  return (
    <div class="page">
      <div class="bar">
        <button type="button" onClick={close}>
          {closeText}
        </button>
        <code>{visible(file.path)}</code>
        <span class="quiet number">{size(file.size)}</span>
        <button type="button" onClick={() => attempt(() => save(open, file))}>
          {download}
        </button>
      </div>
      <WhenLoaded
        of={content}
        draw={(text) =>
          text === undefined ? (
            <p class="quiet">{tooLarge}</p>
          ) : (
            <Output text={text} label={visible(file.path)} language={endingOf(file)} />
          )
        }
      />
    </div>
  )
}

/** The browser downloads it, of any size: the page has nothing of it in memory, and the URL works once. */
async function save(open: OpenConversation, file: FileEntry): Promise<void> {
  saveFrom(await open.handle.files.link(file.path), nameOf(file))
}
