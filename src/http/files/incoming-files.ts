/** Reads files in a request body: a raw body, or the parts of a form, streamed one after the other. */
import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import { tooLarge } from '../../conversations/files/file-changes.ts'
import type { IncomingFile } from '../../files/receive-files.ts'

/** Maximum overhead of a form around its files. */
const FORM_BYTES = 1024 * 1024
/** Limits of a form: a body with many empty parts would waste the server's time. */
const LIMITS = { fileSize: Infinity, parts: 1000, headerPairs: 32, headerSize: 16 * 1024, fieldSize: 1024 }

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
  try {
    for await (const part of request.parts({ preservePath: true, limits: LIMITS })) {
      if (part.type !== 'file')
        throw new Problem('invalid_request', 'A part of the form is not a file. Give each part a filename.')
      yield { filename: part.filename || undefined, content: pieces(part.file) }
    }
  } catch (error) {
    throw error instanceof Problem ? error : broken(error)
  }
}

async function* pieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* content
  } catch (error) {
    throw error instanceof Problem ? error : broken(error)
  }
}

const broken = (cause: unknown) =>
  new Problem('invalid_request', 'The body is incomplete or not a valid form. Send it again.', { cause })
