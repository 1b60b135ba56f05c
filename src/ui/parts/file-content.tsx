/** The text of a file of a conversation: its beginning, if it is large. */
import { AgentServerError } from '../../client/client.ts'
import type { FileEntry } from '../../contract/files.ts'
import type { OpenConversation } from '../state/conversation.ts'
import { texts } from '../state/preferences.ts'
import { visible } from '../text/visible.ts'
import { WhenLoaded, useLoaded } from './loaded.tsx'
import { Output } from './output.tsx'

const MAX_SHOWN_BYTES = 500_000

/** What a search finds has no size. */
export type ListedFile = Pick<FileEntry, 'path' | 'type'> & { readonly size?: number | undefined }

type Props = { readonly open: OpenConversation; readonly file: ListedFile }

export function FileContent({ open, file }: Props) {
  const content = useLoaded((signal) => beginningOf(open, file, signal), [open.id, file.path])
  return (
    <WhenLoaded
      of={content}
      draw={({ text, isWhole }) => (
        <>
          {!isWhole && <p class="quiet">{texts.value.tooLarge}</p>}
          <Output text={text} label={visible(file.path)} language={endingOf(file)} />
        </>
      )}
    />
  )
}

/** Reads what the page shows of a file, whatever its size is now. */
export async function beginningOf(
  { handle }: Pick<OpenConversation, 'handle'>,
  { path, size: listedBytes }: ListedFile,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  // An empty file has no range.
  if (listedBytes === 0) return { text: '', isWhole: true }
  const range = `bytes=0-${MAX_SHOWN_BYTES - 1}`
  const response = await handle.files.get(path, { signal, headers: { range } }).catch(unlessEmpty)
  if (!response) return { text: '', isWhole: true }
  const bytes = Number(/\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1] ?? 0)
  return { text: await response.text(), isWhole: bytes <= MAX_SHOWN_BYTES }
}

function unlessEmpty(error: unknown): undefined {
  if (!(error instanceof AgentServerError) || error.status !== 416) throw error
}

export const nameOf = ({ path }: ListedFile): string => path.split('/').at(-1) ?? path

/** Undefined for a file whose name has none: it may have the colours of a terminal. */
const endingOf = (entry: ListedFile): string | undefined => /\.(\w+)$/.exec(nameOf(entry))?.[1]
