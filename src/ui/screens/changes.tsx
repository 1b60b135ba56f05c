/** What has changed in the files, by git or by the snapshots of the server, with comments that become one message. */
import { useMemo, useState } from 'preact/hooks'
import { AgentServerError } from '../../client/client.ts'
import type { FileDiff } from '../../contract/diff.ts'
import { useAtMost } from '../parts/at-most.ts'
import { Blank } from '../parts/blank.tsx'
import { FileContent } from '../parts/file-content.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt } from '../parts/notices.tsx'
import { classOfLine } from '../parts/tool-card.tsx'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import type { ChatRow } from '../state/items.ts'
import { texts } from '../state/preferences.ts'
import { draftOf, remember, rememberedValue } from '../state/remembered.ts'
import { show } from '../state/route.ts'
import { client, may } from '../state/session.ts'
import { visible } from '../text/visible.ts'

const BASES = ['run', 'start', 'head', 'merge_base'] as const
type Base = (typeof BASES)[number]

type Line = {
  readonly key: string
  readonly path: string
  readonly number: number | undefined
  readonly text: string
  readonly file?: FileDiff
  readonly isNewFile?: boolean
}
type Comment = {
  readonly key: string
  readonly path: string
  readonly number: number | undefined
  readonly quoted: string
  readonly text: string
}

export function Changes({ open }: { readonly open: OpenConversation }) {
  const { changesSince, base: bases, noChanges, notKnown, sendComments } = texts.value
  const [base, setBase] = useState<Base>('head')
  const [comments, setStored] = useState(() => keptComments(open.id))
  const setComments = (value: readonly Comment[]) => {
    setStored(value)
    remember(draftOf(`comments ${open.id}`), value.length > 0 ? JSON.stringify(value) : undefined)
  }
  const lastChange = useAtMost(open.rows.value.findLast(changesFiles)?.seq, REFRESH_MS)
  const diff = useLoaded((signal) => readDiff(open.id, base, signal), [open.id, base, lastChange])
  const newFiles = useLoaded((signal) => readNewFiles(open.id, signal), [open.id, lastChange])
  const lines = useMemo(() => diff.value && [...diff.value, ...(newFiles.value ?? [])], [diff.value, newFiles.value])
  const send = async () => {
    await open.handle.send(messageOfComments(comments))
    setComments([])
    show('c', open.id)
  }
  return (
    <div class="page filled">
      <div class="bar">
        <label>
          {changesSince}{' '}
          <select
            value={base}
            onChange={({ currentTarget }) => setBase(BASES.find((name) => name === currentTarget.value) ?? 'head')}
          >
            {BASES.map((name) => (
              <option key={name} value={name}>
                {bases[name]}
              </option>
            ))}
          </select>
        </label>
        {comments.length > 0 && (
          <button type="button" class="primary" onClick={() => attempt(send)}>
            {sendComments(comments.length)}
          </button>
        )}
      </div>
      <WhenLoaded
        of={diff}
        draw={() =>
          !lines || (lines.length === 0 && newFiles.value) ? (
            <Blank text={lines ? noChanges : notKnown} />
          ) : (
            <VirtualRows
              rows={lines}
              keyOf={({ key }) => key}
              estimate={20}
              label={changesSince}
              draw={(line) => (
                <DiffLine
                  open={open}
                  line={line}
                  comment={comments.find(({ key }) => key === line.key)}
                  set={(text) => setComments(withComment(comments, line, text))}
                />
              )}
            />
          )
        }
      />
    </div>
  )
}

/** A diff of many files takes git a while: an agent at work does not make it begin again with each step. */
const REFRESH_MS = 2000

const CHANGING: ReadonlySet<string> = new Set(['Result', 'FileUpdate', 'CommandResult', 'Rewound'])

const changesFiles = (row: ChatRow): boolean =>
  row.kind === 'call' ? row.result !== undefined : row.kind === 'event' && CHANGING.has(row.event.type)

/** Asks git, or the snapshots where there is no repository. Null where there is neither. */
async function readDiff(id: string, base: Base, signal: AbortSignal): Promise<Line[] | null> {
  const conversation = client().conversation(id)
  try {
    const { items } = await conversation.git.diff({ base, limit: 1000 }, { signal })
    return items.flatMap(linesOf)
  } catch (error) {
    if (!isUnknown(error)) throw error
  }
  try {
    const query = { from: base === 'run' ? 'run' : 'start', limit: 500 }
    const { items } = await client().api.call('getDiff', { params: { id }, query }, { signal })
    return items.flatMap(linesOf)
  } catch (error) {
    if (!isUnknown(error)) throw error
    return null
  }
}

/** What the agent has made is in no commit. */
async function readNewFiles(id: string, signal: AbortSignal): Promise<Line[]> {
  try {
    const { items } = await client().conversation(id).git.status({ limit: 1000 }, { signal })
    return items.flatMap(({ path, untracked }) => (untracked ? [newFileLine(path)] : []))
  } catch (error) {
    if (!isUnknown(error)) throw error
    return []
  }
}

/** There is no repository, or there are no snapshots. */
const isUnknown = (error: unknown): boolean =>
  error instanceof AgentServerError && (error.status === 404 || error.status === 409)

/** A header for each file, and its lines with their numbers in the new file. */
function linesOf(file: FileDiff): Line[] {
  const { path, patch = '' } = file
  const lines: Line[] = [{ key: path, path, number: undefined, text: path, file }]
  const start = patch.indexOf('\n@@')
  if (start === -1) return lines
  let number = 0
  for (const [index, text] of patch
    .slice(start + 1)
    .replace(/\n$/, '')
    .split('\n')
    .entries()) {
    const hunk = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(text)
    if (hunk) number = Number(hunk[1])
    lines.push({ key: `${path} ${index}`, path, number: hunk || text.startsWith('-') ? undefined : number, text })
    if (!hunk && !text.startsWith('-') && !text.startsWith('\\')) number += 1
  }
  return lines
}

const newFileLine = (path: string): Line => ({
  key: `untracked ${path}`,
  path,
  number: undefined,
  text: path,
  isNewFile: true,
})

type LineProps = {
  readonly open: OpenConversation
  readonly line: Line
  readonly comment: Comment | undefined
  readonly set: (text: string | undefined) => void
}

function DiffLine({ open, line, comment, set }: LineProps) {
  const [isOpen, setOpen] = useState(false)
  if (line.file) return <FileHead file={line.file} />
  if (line.isNewFile) return <NewFile open={open} path={line.path} />
  return (
    <div class="diff-line">
      <div class={classOfLine(line.text)}>
        {may('write') ? (
          <button
            type="button"
            class="line-number"
            aria-label={`${texts.value.addComment} ${line.number ?? ''}`}
            onClick={() => setOpen(!isOpen)}
          >
            {line.number ?? '·'}
          </button>
        ) : (
          <span class="line-number">{line.number ?? ''}</span>
        )}
        <code>{visible(line.text)}</code>
      </div>
      {(isOpen || comment) && <CommentBox text={comment?.text ?? ''} set={set} close={() => setOpen(false)} />}
    </div>
  )
}

/** A file that git does not know: its content is read when somebody wants to see it. */
function NewFile({ open, path }: { readonly open: OpenConversation; readonly path: string }) {
  const { untracked, showContent, close } = texts.value
  const [isShown, setShown] = useState(false)
  const isFolder = path.endsWith('/')
  return (
    <>
      <h2 class="file-head">
        <code>{visible(path)}</code>
        <span class="badge">{untracked}</span>
        {!isFolder && (
          <button type="button" class="link" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
            {isShown ? close : showContent}
          </button>
        )}
      </h2>
      {isShown && <FileContent open={open} file={{ path, type: 'file' }} />}
    </>
  )
}

function FileHead({
  file: { path, old_path, status, added, removed, binary, patch_truncated },
}: {
  readonly file: FileDiff
}) {
  return (
    <h2 class="file-head">
      <code>{visible(old_path === undefined ? path : `${old_path} → ${path}`)}</code>
      <span class="badge">{status}</span>
      <span class="number added">+{added}</span>
      <span class="number removed">−{removed}</span>
      {binary && <span class="quiet">{texts.value.binary}</span>}
      {patch_truncated && <span class="quiet">{texts.value.cut}</span>}
    </h2>
  )
}

function CommentBox({
  text,
  set,
  close,
}: {
  readonly text: string
  readonly set: (text: string | undefined) => void
  readonly close: () => void
}) {
  const { comment, cancel } = texts.value
  return (
    <div class="comment">
      <textarea
        rows={2}
        aria-label={comment}
        placeholder={comment}
        value={text}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
      <button type="button" class="link" onClick={() => (set(undefined), close())}>
        {cancel}
      </button>
    </div>
  )
}

function keptComments(id: string): readonly Comment[] {
  try {
    const value: unknown = JSON.parse(rememberedValue(draftOf(`comments ${id}`)) ?? '[]')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this screen writes it
    return Array.isArray(value) ? (value as Comment[]) : []
  } catch {
    return []
  }
}

function withComment(
  comments: readonly Comment[],
  { key, path, number, text: quotedText }: Line,
  text: string | undefined,
): Comment[] {
  const others = comments.filter((comment) => comment.key !== key)
  return text === undefined || text === '' ? others : [...others, { key, path, number, quoted: quotedText, text }]
}

function messageOfComments(comments: readonly Comment[]): string {
  const parts = comments.map(
    ({ path, number, quoted, text }) =>
      `${path}${number === undefined ? '' : `:${number}`}\n> ${quoted.slice(0, 200)}\n\n${text}`,
  )
  return `Comments on the changes:\n\n${parts.join('\n\n')}`
}
