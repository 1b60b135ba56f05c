/** Sends a file, a part of it, or a directory's archive as a response, reading only as fast as the client does. */
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import { etagOf } from '../../files/jail/file-version.ts'
import type { OpenedFile } from '../../files/jail/read-file.ts'
import { contentTypeOf, downloadHeaders } from './file-headers.ts'
import { isKnown, isSameRange } from './preconditions.ts'

/** Closes the file when everything is sent, the client has disconnected, or nothing needs to be sent. */
export async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: OpenedFile,
  name: string,
): Promise<FastifyReply> {
  try {
    const { headers, method } = request
    const size = Number(file.stats.size)
    const version = { etag: etagOf(file.stats), mtime: file.stats.mtime }
    void reply.header('etag', version.etag).header('last-modified', version.mtime.toUTCString())
    if (isKnown(headers, version)) return reply.code(304).send(await nothing(file))
    const range =
      method === 'GET' && isSameRange(String(headers['if-range'] ?? ''), version)
        ? parseRange(headers.range, size)
        : undefined
    if (range === 'unsatisfiable') {
      void reply.header('content-range', `bytes */${size}`)
      throw new Problem(
        'range_not_satisfiable',
        'The range begins after the end of the file. Request a range inside the file.',
        { details: { size } },
      )
    }
    const { start, end } = range ?? { start: 0, end: size }
    if (range) void reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${size}`)
    void reply.headers({
      ...downloadHeaders(name),
      'accept-ranges': 'bytes',
      'content-type': contentTypeOf(name),
      'content-length': end - start,
    })
    if (method === 'HEAD') return reply.send(await nothing(file))
    return reply.send(file.content(start, end))
  } catch (error) {
    await file[Symbol.asyncDispose]()
    throw error
  }
}

export function sendArchive(reply: FastifyReply, archive: Readable | undefined, name: string): FastifyReply {
  void reply.headers({ ...downloadHeaders(`${name}.tar.gz`), 'content-type': 'application/gzip' })
  return reply.send(archive)
}

/** A file of an earlier moment. */
export function sendContent(
  reply: FastifyReply,
  content: Buffer,
  { name, version }: { readonly name: string; readonly version: string },
): FastifyReply {
  void reply.headers({ ...downloadHeaders(name), 'content-type': contentTypeOf(name), etag: `"${version}"` })
  return reply.send(content)
}

async function nothing(file: OpenedFile): Promise<undefined> {
  await file[Symbol.asyncDispose]()
  return undefined
}

/** `end` is exclusive. */
type ByteRange = { readonly start: number; readonly end: number }

/**
 * Parses the `Range` header (RFC 9110, section 14). Returns undefined to send the whole file: without a range, with an
 * invalid one, or with several, which servers need not support.
 */
function parseRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(header?.replaceAll(' ', '') ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const count = Number(last)
    return count > 0 && size > 0 ? { start: Math.max(0, size - count), end: size } : 'unsatisfiable'
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size : Math.min(size, Number(last) + 1) }
}
