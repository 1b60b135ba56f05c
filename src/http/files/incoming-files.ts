/** Reads files in a request body: a raw body, or the parts of a form, streamed one after the other. */
import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import { tooLarge } from '../../workspace/files/room.ts'
import type { IncomingFile } from '../../files/receive-files.ts'
import { MAX_HEAD_BYTES, PartHeads } from './part-heads.ts'

/** Maximum overhead of a form around its files. */
const FORM_BYTES = 1024 * 1024
/**
 * Limits of a form: a body with many empty parts would waste the server's time. The parser cuts headers above its own
 * limits without an error, so that those are above `MAX_HEAD_BYTES`.
 */
const LIMITS = {
  fileSize: Infinity,
  parts: 1000,
  headerPairs: MAX_HEAD_BYTES,
  headerSize: 2 * MAX_HEAD_BYTES,
  fieldSize: 1024,
}

/** Returns the raw body; nothing if there is none. Throws a `Problem` if Content-Length exceeds the limit. */
export function contentOf({ headers, body }: FastifyRequest, maxBytes: number): AsyncIterable<Uint8Array> {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
  return body instanceof Readable ? pieces(readOrDrop(body)) : noBody()
}

async function* noBody(): AsyncGenerator<Uint8Array> {}

/** If the reader stops early, the rest is read and discarded, so that the connection can serve the next request. */
async function* readOrDrop(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    // A stream without an encoding yields bytes.
    yield* body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
  } finally {
    body.resume()
  }
}

/** Yields the files of a form. Read each one before requesting the next. */
export function filesOf(request: FastifyRequest, maxBytes: number): AsyncIterable<IncomingFile> {
  if (!request.isMultipart())
    throw new Problem('unsupported_media_type', 'Send the files as multipart/form-data, or one with PUT.')
  if (Number(request.headers['content-length'] ?? 0) > maxBytes + FORM_BYTES) throw tooLarge()
  return parts(request)
}

async function* parts(request: FastifyRequest): AsyncGenerator<IncomingFile> {
  const heads = new PartHeads(boundaryOf(request))
  const fault = Promise.withResolvers<never>()
  fault.promise.catch(() => {})
  const look = (bytes: Buffer) => {
    if (heads.add(bytes)) return
    request.raw.off('data', look)
    fault.reject(longHead())
  }
  let count = 0
  try {
    const all = request.parts({ preservePath: true, limits: LIMITS })
    // The parser is attached in this tick, too, and gets the same bytes.
    request.raw.on('data', look)
    for (;;) {
      const { done, value: part } = await Promise.race([all.next(), fault.promise])
      if (done === true) break
      count++
      if (part.type !== 'file') throw noFile()
      yield { filename: part.filename || undefined, content: pieces(part.file) }
    }
    if (count < heads.count) throw noFile()
  } catch (error) {
    throw error instanceof Problem ? error : brokenBody(error)
  } finally {
    request.raw.off('data', look)
  }
}

/** The form of the header was checked by the parser, which finds the same. */
function boundaryOf({ headers }: FastifyRequest): string {
  const [, quotedBoundary, plain] = /;\s*boundary=(?:"([^"]*)"|([^\s;]*))/i.exec(headers['content-type'] ?? '') ?? []
  return quotedBoundary ?? plain ?? ''
}

const noFile = () =>
  new Problem(
    'invalid_request',
    'A part of the form is not a file. Give each part a Content-Disposition with a filename.',
  )

const longHead = () =>
  new Problem(
    'invalid_request',
    `The form has more than ${MAX_HEAD_BYTES} bytes in the header of a part, or outside of its parts. Send less.`,
  )

async function* pieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* content
  } catch (error) {
    throw error instanceof Problem ? error : brokenBody(error)
  }
}

const brokenBody = (cause: unknown) =>
  new Problem('invalid_request', 'The body is incomplete or not a valid form. Send it again.', { cause })
