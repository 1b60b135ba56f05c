/** `If-Match`, `If-None-Match` and their kin (RFC 9110, section 13): whether a request is about the current file. */
import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '../../contract/problem.ts'
import type { Publishing } from '../../files/write-file.ts'

export type Version = { readonly etag: string; readonly mtime: Date }

/** For a change. `If-None-Match: *` makes it one of what is not there yet. */
export function publishingOf(headers: IncomingHttpHeaders): Publishing {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  return {
    isNew: ifNoneMatch?.trim() === '*',
    precondition(etag) {
      if (ifMatch !== undefined && !isListed(ifMatch, etag)) throw changed()
      if (ifNoneMatch !== undefined && etag !== undefined && isListed(ifNoneMatch, etag)) throw changed()
    },
  }
}

/** For a look. Throws a `Problem` when what is asked for is not there any more; answers whether the client has it already. */
export function isKnown(headers: IncomingHttpHeaders, { etag, mtime }: Version): boolean {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch !== undefined ? !isListed(ifMatch, etag) : isLater(mtime, headers['if-unmodified-since'])) throw changed()
  if (ifNoneMatch !== undefined) return isListed(ifNoneMatch.replaceAll('W/', ''), etag)
  const since = headers['if-modified-since']
  return since !== undefined && isDate(since) && !isLater(mtime, since)
}

/** Whether a range is still of the file that the client has the rest of; it is when `If-Range` says nothing. */
export function isSameRange(ifRange: string, { etag, mtime }: Version): boolean {
  if (ifRange === '') return true
  return ifRange.includes('"') ? ifRange.trim() === etag : isDate(ifRange) && !isLater(mtime, ifRange)
}

/** `*` matches any existing file. The server never issues weak tags. */
function isListed(header: string, etag: string | undefined): boolean {
  if (etag === undefined) return false
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag)
}

/** The header tells whole seconds. */
function isLater(mtime: Date, than: string | undefined): boolean {
  return than !== undefined && isDate(than) && Math.floor(mtime.getTime() / 1000) * 1000 > Date.parse(than)
}

const isDate = (text: string) => !Number.isNaN(Date.parse(text))

const changed = () =>
  new Problem(
    'precondition_failed',
    'If-Match or If-None-Match does not hold for the file. Read it again, then decide.',
  )
