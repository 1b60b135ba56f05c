/** What has changed in the files, by git or by the snapshots of the server, with comments that become one message. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Blank } from '../parts/blank.tsx'
import { useLastChange } from '../parts/last-change.ts'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import type { RowPage } from '../parts/further-pages.ts'
import { useFurtherPages } from '../parts/further-pages.ts'
import { attempt } from '../parts/notices.tsx'
import { VirtualRows } from '../parts/virtual-rows.tsx'
import { Comments } from '../state/comments.ts'
import type { LineComment } from '../state/line-comment.ts'
import { messageOfComments } from '../state/line-comment.ts'
import type { OpenConversation } from '../state/conversation.ts'
import type { DiffRow } from '../state/diff-lines.ts'
import { keyOfAnchor, rowsOfFile } from '../state/diff-lines.ts'
import { texts } from '../state/preferences.ts'
import { showFromHere } from '../state/route.ts'
import { SameRequest } from '../state/same-request.ts'
import { client } from '../state/session.ts'
import { DiffLine, LostComment } from './diff-line.tsx'
import { isUnknown, useNewFiles } from './new-files.ts'

const BASES = ['run', 'start', 'head', 'merge_base'] as const
type Base = (typeof BASES)[number]

export function Changes({ open }: { readonly open: OpenConversation }) {
  const { changesSince, noChanges, noSnapshots, notKnown } = texts.value
  const [base, setBase] = useState<Base>('head')
  const [comments] = useState(() => new Comments(open.id))
  useEffect(() => comments.follow(), [])
  const commentedPaths = useMemo(() => new Set(comments.all.value.map(({ path }) => path)), [comments.all.value])
  const { diff, rows, isWhole, more, newFiles } = useDiff(open, base, commentedPaths)
  const { places, lost } = useMemo(() => placesOf(comments.all.value, rows ?? []), [comments.all.value, rows])
  const isOutdated = (comment: LineComment) => isWhole && comment.base === base && !places.has(keyOfAnchor(comment))
  return (
    <div class="page filled">
      <div class="bar">
        <BaseField base={base} set={setBase} />
        <SendComments open={open} comments={comments} isOutdated={isOutdated} />
      </div>
      {diff.value !== undefined && lost.length > 0 && (
        <LostComments comments={comments} lost={lost} isOutdated={isOutdated} />
      )}
      {newFiles.failed && <WhenLoaded of={newFiles.failed} draw={() => null} />}
      <WhenLoaded
        of={diff}
        draw={() =>
          !rows || (rows.length === 0 && isWhole) ? (
            <Blank text={rows ? noChanges : base === 'run' || base === 'start' ? noSnapshots : notKnown} />
          ) : (
            <VirtualRows
              rows={rows}
              keyOf={({ key }) => key}
              estimate={20}
              label={changesSince}
              onEnd={more}
              draw={(row) => (
                <DiffLine
                  row={row}
                  comment={places.get(row.key)?.comment}
                  toggle={commentedPaths.has(row.path) ? undefined : () => newFiles.toggle(row.path)}
                  set={(text) => row.anchor && comments.set(row.anchor, base, text)}
                />
              )}
            />
          )
        }
      />
    </div>
  )
}

function BaseField({ base, set }: { readonly base: Base; readonly set: (base: Base) => void }) {
  const { changesSince, base: bases } = texts.value
  return (
    <label>
      {changesSince}{' '}
      <select
        value={base}
        onChange={({ currentTarget }) => set(BASES.find((name) => name === currentTarget.value) ?? 'head')}
      >
        {BASES.map((name) => (
          <option key={name} value={name}>
            {bases[name]}
          </option>
        ))}
      </select>
    </label>
  )
}

type SendProps = {
  readonly open: OpenConversation
  readonly comments: Comments
  readonly isOutdated: (comment: LineComment) => boolean
}

function SendComments({ open, comments, isOutdated }: SendProps) {
  const [isBusy, setBusy] = useState(false)
  const [request] = useState(() => new SameRequest())
  const all = comments.all.value
  if (all.length === 0) return null
  const send = async () => {
    const show = showFromHere()
    setBusy(true)
    try {
      const message = messageOfComments(all, isOutdated)
      await request.send(message, (options) => open.handle.send(message, options))
      comments.remove(all)
      // Who has written another comment meanwhile stays.
      if (comments.all.peek().length === 0) show('c', open.id)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button type="button" class="primary" disabled={isBusy} onClick={() => attempt(send)}>
      {texts.value.sendComments(all.length)}
    </button>
  )
}

type LostProps = {
  readonly comments: Comments
  readonly lost: readonly LineComment[]
  readonly isOutdated: (comment: LineComment) => boolean
}

/** Comments on lines that these changes do not have: those of another base, and those whose line was changed again. */
function LostComments({ comments, lost, isOutdated }: LostProps) {
  return (
    <ul class="plain lost-comments" aria-label={texts.value.lostComments}>
      {lost.map((comment) => (
        <li key={keyOfAnchor(comment)}>
          <LostComment
            comment={comment}
            isOutdated={isOutdated(comment)}
            set={(text) => comments.set(comment, comment.base, text)}
          />
        </li>
      ))}
    </ul>
  )
}

/** Returns the comments with a line, by its key, and the others. */
function placesOf(all: readonly LineComment[], rows: readonly DiffRow[]) {
  const places = new Map<string, LineComment>()
  if (all.length > 0) {
    const byKey = new Map(all.map((comment) => [keyOfAnchor(comment), comment]))
    for (const { key } of rows) {
      const comment = byKey.get(key)
      if (comment) places.set(key, comment)
    }
  }
  return { places, lost: all.filter((comment) => !places.has(keyOfAnchor(comment))) }
}

type DiffPage = RowPage<DiffRow> & { readonly hasGit: boolean }

/** The first rows are there before git has compared many files. */
const FIRST_FILES = 5

/** Reads the diff again when something may have changed files. */
function useDiff(open: OpenConversation, base: Base, commentedPaths: ReadonlySet<string>) {
  const lastChange = useLastChange(open)
  const shownFiles = useRef(0)
  const diff = useLoaded((signal) => readDiff(open.id, base, shownFiles.current, signal), [open.id, base], lastChange)
  const newFiles = useNewFiles(open, commentedPaths, lastChange)
  const { page, more } = useFurtherPages(diff.value, (before) => readPage(open.id, base, before))
  // Who has scrolled down stays there when the diff is read again.
  shownFiles.current = page?.rows.filter(({ file }) => file).length ?? 0
  const rows = useMemo(() => {
    // Snapshots know files that are in no commit.
    const knownPaths = new Set(page?.rows.flatMap(({ file, path }) => (file ? [path] : [])))
    return page && [...page.rows, ...(newFiles.rows ?? []).filter(({ path }) => !knownPaths.has(path))]
  }, [page, newFiles.rows])
  return { diff, rows, more, isWhole: page?.next === undefined && newFiles.isWhole, newFiles }
}

/** Asks git, or the snapshots where there is no repository. Null where there is neither. */
async function readDiff(id: string, base: Base, files: number, signal: AbortSignal): Promise<DiffPage | null> {
  for (const hasGit of [true, false]) {
    try {
      return await readPage(id, base, { rows: [], hasGit }, { files: Math.max(files, FIRST_FILES), signal })
    } catch (error) {
      if (!isUnknown(error)) throw error
    }
  }
  return null
}

type PageOptions = { readonly files?: number; readonly signal?: AbortSignal }

/** Returns the page after `before`, or the first one. */
async function readPage(
  id: string,
  base: Base,
  { hasGit, next: page_id }: DiffPage,
  { files = Infinity, signal }: PageOptions = {},
): Promise<DiffPage> {
  const { items, next_page_id } = hasGit
    ? await client()
        .conversation(id)
        .git.diff({ base, limit: Math.min(files, 1000), page_id }, { signal })
    : await client().api.call(
        'getDiff',
        { params: { id }, query: { from: base === 'run' ? 'run' : 'start', limit: Math.min(files, 500), page_id } },
        { signal },
      )
  return { rows: items.flatMap(rowsOfFile), next: next_page_id ?? undefined, hasGit }
}
