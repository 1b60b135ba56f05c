/** Evaluates `If-Match`, `If-None-Match` and related headers (RFC 9110, section 13) against the current file. */
import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '../../contract/problem.ts'
import type { Publishing } from '../../files/write-file.ts'

export type Version = { readonly etag: string; readonly mtime: Date }

/** Reads the conditions of a write. `If-None-Match: *` requires that the file does not exist yet. */
export function publishingOf(headers: IncomingHttpHeaders): Publishing {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  return {
    isNew: ifNoneMatch?.trim() === '*',
    precondition(etag) {
      if (ifMatch !== undefined && !isListed(ifMatch, etag)) throw changedFile()
      if (ifNoneMatch !== undefined && etag !== undefined && isListed(ifNoneMatch, etag)) throw changedFile()
    },
  }
}

/**
 * Reads the conditions of a read. Throws a `Problem` if the requested version no longer exists; returns true if the
 * client already has it.
 */
export function isKnown(headers: IncomingHttpHeaders, { etag, mtime }: Version): boolean {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch !== undefined ? !isListed(ifMatch, etag) : isLater(mtime, headers['if-unmodified-since']))
    throw changedFile()
  if (ifNoneMatch !== undefined) return isListed(ifNoneMatch.replaceAll('W/', ''), etag)
  const since = headers['if-modified-since']
  return since !== undefined && isDate(since) && !isLater(mtime, since)
}

/** True if a range applies to the version that the client has, or if there is no `If-Range`. */
export function isSameRange(ifRange: string, { etag, mtime }: Version): boolean {
  if (ifRange === '') return true
  return ifRange.includes('"') ? ifRange.trim() === etag : isDate(ifRange) && !isLater(mtime, ifRange)
}

/** `*` matches any existing file. The server never issues weak tags. */
function isListed(header: string, etag: string | undefined): boolean {
  if (etag === undefined) return false
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag)
}

/** The header has a resolution of whole seconds. */
function isLater(mtime: Date, than: string | undefined): boolean {
  return than !== undefined && isDate(than) && Math.floor(mtime.getTime() / 1000) * 1000 > Date.parse(than)
}

const isDate = (text: string) => !Number.isNaN(Date.parse(text))

const changedFile = () =>
  new Problem(
    'precondition_failed',
    'If-Match or If-None-Match does not hold for the file. Read it again, then decide.',
  )
