/** One row of a diff: the head of a file, or a line with what a person says about it. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { FileDiff } from '../../contract/diff.ts'
import { classOfLine } from '../parts/tool-card.tsx'
import type { LineComment } from '../state/line-comment.ts'
import type { DiffRow } from '../state/diff-lines.ts'
import { texts } from '../state/preferences.ts'
import { may } from '../state/session.ts'
import { short, visible } from '../text/visible.ts'
import { isFolder } from './new-files.ts'

/** What is shown of a line: the code of a whole program can be in one. */
const MOST_CHARS = 5000

type LineProps = {
  readonly row: DiffRow
  readonly comment: string | undefined
  /** Shows or hides the lines of a file that git does not know. */
  readonly toggle: (() => void) | undefined
  readonly set: (text: string) => void
}

export function DiffLine({ row, comment, toggle, set }: LineProps) {
  const { text, anchor, file, newFile } = row
  const [isOpen, setOpen] = useState(false)
  const hasComment = comment !== undefined
  const line = useRef<HTMLDivElement>(null)
  // The box of a comment that was sent is closed; the one that somebody has emptied to write something else is not.
  useEffect(() => {
    setOpen(line.current?.querySelector('textarea:focus') != null)
  }, [hasComment])
  const write = (comment: string) => {
    setOpen(true)
    set(comment)
  }
  if (file) return <FileHead file={file} />
  if (newFile) return <NewFileHead row={row} toggle={toggle} />
  const number = anchor?.number
  return (
    <div class="diff-line" ref={line}>
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
        <code>{text.length > MOST_CHARS ? `${visible(text.slice(0, MOST_CHARS))} …` : visible(text)}</code>
      </div>
      {(isOpen || hasComment) && <CommentBox text={comment ?? ''} set={write} close={() => setOpen(false)} />}
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

type NewFileProps = { readonly row: DiffRow; readonly toggle: (() => void) | undefined }

/** The head of a file that git does not know. One with comments stays open. */
function NewFileHead({ row: { path, newFile }, toggle }: NewFileProps) {
  const { untracked, showContent, close, tooLarge } = texts.value
  return (
    <h2 class="file-head">
      <code>{visible(path)}</code>
      <span class="badge">{untracked}</span>
      {toggle && !isFolder(path) && (
        <button type="button" class="link" aria-expanded={newFile?.isShown} onClick={toggle}>
          {newFile?.isShown ? close : showContent}
        </button>
      )}
      {newFile?.isCut && <span class="quiet">{tooLarge}</span>}
    </h2>
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
