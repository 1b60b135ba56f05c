/** One row of a diff: the head of a file, or a line with what a person says about it. */
import { useEffect, useState } from 'preact/hooks'
import type { FileDiff } from '../../contract/diff.ts'
import { FileContent } from '../parts/file-content.tsx'
import { classOfLine } from '../parts/tool-card.tsx'
import type { LineComment } from '../state/comments.ts'
import type { OpenConversation } from '../state/conversation.ts'
import type { DiffRow } from '../state/diff-lines.ts'
import { texts } from '../state/preferences.ts'
import { may } from '../state/session.ts'
import { short, visible } from '../text/visible.ts'

type LineProps = {
  readonly open: OpenConversation
  readonly row: DiffRow
  readonly comment: string | undefined
  readonly set: (text: string) => void
}

export function DiffLine({ open, row: { path, text, anchor, file, isNewFile }, comment, set }: LineProps) {
  const [isOpen, setOpen] = useState(false)
  const hasComment = comment !== undefined
  // The box of a comment that was sent is closed.
  useEffect(() => {
    if (!hasComment) setOpen(false)
  }, [hasComment])
  if (file) return <FileHead file={file} />
  if (isNewFile) return <NewFile open={open} path={path} />
  const number = anchor?.number
  return (
    <div class="diff-line">
      <div class={classOfLine(text)}>
        {anchor && may('write') ? (
          <button
            type="button"
            class="line-number"
            aria-label={`${texts.value.addComment} ${number}`}
            onClick={() => setOpen(!isOpen)}
          >
            {number}
          </button>
        ) : (
          <span class="line-number">{number}</span>
        )}
        <code>{visible(text)}</code>
      </div>
      {(isOpen || hasComment) && <CommentBox text={comment ?? ''} set={set} close={() => setOpen(false)} />}
    </div>
  )
}

type LostProps = {
  readonly comment: LineComment
  readonly isOutdated: boolean
  readonly set: (text: string) => void
}

/** A comment without its line. */
export function LostComment({ comment: { path, number, text, comment }, isOutdated, set }: LostProps) {
  return (
    <>
      <p>
        <code>
          {visible(path)}:{number}
        </code>{' '}
        {isOutdated && <span class="badge">{texts.value.outdated}</span>} <code class="quiet">{short(text, 200)}</code>
      </p>
      <CommentBox text={comment} set={set} />
    </>
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

type BoxProps = { readonly text: string; readonly set: (text: string) => void; readonly close?: () => void }

function CommentBox({ text, set, close }: BoxProps) {
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
      <button type="button" class="link" onClick={() => (set(''), close?.())}>
        {cancel}
      </button>
    </div>
  )
}
