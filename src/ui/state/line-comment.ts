/** A comment on a line of changes, and the message that all of them become. Pure. */
import type { LineAnchor } from './diff-lines.ts'

export type LineComment = LineAnchor & {
  /** What the diff was a diff to. Other diffs may not have the line. */
  readonly base: string
  /** What the person says. `text` is what they say it about. */
  readonly comment: string
}

const MAX_QUOTED_CHARS = 200

/** What a file is called, and what it says, cannot look like words of the person. */
const oneLine = (text: string): string => text.replaceAll(/[\n\r\u0085\u2028\u2029]/g, '⏎')

/** The message to the agent. It quotes each line, so that it is clear what is meant when the file has changed since. */
export function messageOfComments(
  comments: readonly LineComment[],
  isOutdated: (comment: LineComment) => boolean,
): string {
  const parts = comments.map((one) => {
    const facts = [...(one.side === 'old' ? ['removed line'] : []), ...(isOutdated(one) ? ['outdated'] : [])]
    const place = `${oneLine(one.path)}:${one.number}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`
    return `${place}\n> ${oneLine(one.text.slice(0, MAX_QUOTED_CHARS))}\n\n${one.comment}`
  })
  return `Comments on the changes:\n\n${parts.join('\n\n')}`
}
