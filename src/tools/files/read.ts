/** The `Read` tool: shows a text file with line numbers, an image as an image, a notebook and a PDF as text. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { z } from 'zod'
import { UserPart } from '../../contract/values/message.ts'
import { asFile, decode, MAX_FILE_BYTES, showImage } from '../editor/editor-content.ts'
import { EditorError, isTooLarge } from '../editor/editor-faults.ts'
import type { View } from '../editor/file-view.ts'
import { numberLines, viewOutcome } from '../editor/file-view.ts'
import type { FoundFile } from '../../files/editor-files.ts'
import { imageType } from '../editor/image-type.ts'
import { countLines } from '../editor/text-edit.ts'
import type { PageRange } from '../pdf/pdf-answer.ts'
import { MAX_PAGES_WITHOUT_RANGE, MAX_PDF_PAGES, pagesOf } from '../pdf/pdf-answer.ts'
import type { PdfReader } from '../pdf/pdf-reader.ts'
import { isPdf, MAX_PDF_BYTES, showPdf } from '../pdf/show-pdf.ts'
import type { Tool } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import type { AgentFiles } from './agent-files.ts'
import { absolutePath } from '../../policy/links/real-path.ts'
import { toOutcome } from './agent-files.ts'
import { notebookText } from './notebook.ts'

/** Maximum number of lines per call. */
export const MAX_READ_LINES = 2000

/** Maximum number of characters shown per line. */
export const MAX_READ_LINE_CHARS = 2000

/** Maximum bytes of UTF-8 per call: about 25,000 tokens. */
export const MAX_READ_BYTES = 100_000

const ReadInput = z.object({
  file_path: z.string().min(1).describe('Absolute path of the file.'),
  offset: z.int().nonnegative().optional().describe('The line to start at, counted from 1.'),
  limit: z.int().positive().optional().describe(`How many lines to show; at most ${MAX_READ_LINES}.`),
  pages: z.string().optional().describe('Pages of a PDF, such as "1-5" or "3".'),
})
type ReadInput = z.infer<typeof ReadInput>

const DESCRIPTION = `Reads a file.

- Text is shown with line numbers as \`cat -n\` does: up to ${MAX_READ_LINES} lines, ${MAX_READ_LINE_CHARS} characters of each. Use \`offset\` and \`limit\` for the other parts of a long file.
- PNG, JPEG, GIF and WebP files are shown as images, Jupyter notebooks as text. Other binary files are not supported.
- PDFs are shown as text by page, at most ${MAX_PDF_PAGES} pages per call. Those with more than ${MAX_PAGES_WITHOUT_RANGE} pages need \`pages\`.
- It reads files, not directories: use Bash (\`ls\`) for those.
- Read a file before you change it. Several files can be read in one turn.`

export function createRead(files: AgentFiles, pdfs: PdfReader): Tool<ReadInput> {
  return {
    name: 'Read',
    description: DESCRIPTION,
    input: ReadInput,
    output: z.union([z.string(), z.array(UserPart)]),
    readOnly: true,
    access: ({ file_path }) => ({ kind: 'read', paths: [file_path] }),
    run: ({ file_path, offset = 1, limit = MAX_READ_LINES, pages }, { workdir, signal }) =>
      toOutcome(async () => {
        const wantedLines = { first: Math.max(offset, 1), limit, pages: pagesOf(pages), signal }
        return await read({ files, pdfs }, absolutePath(workdir, file_path), wantedLines)
      }),
  }
}

type WantedLines = {
  readonly first: number
  readonly limit: number
  /** The pages of a PDF; other files have none. */
  readonly pages: PageRange | undefined
  readonly signal: AbortSignal
}

type ReadDeps = { readonly files: AgentFiles; readonly pdfs: PdfReader }

/** `toOutcome` converts its errors. */
async function read({ files, pdfs }: ReadDeps, path: string, wantedLines: WantedLines): Promise<ToolOutcome> {
  const maxBytes = /\.pdf$/i.test(path) ? MAX_PDF_BYTES : MAX_FILE_BYTES
  const foundEntry = await files.look(path, maxBytes)
  if (foundEntry.kind === 'directory') throw new EditorError(`${path} is a directory. Use Bash (\`ls\`) to list it.`)
  const file = asFile(path, foundEntry, maxBytes)
  const outcome = isPdf(file.bytes)
    ? await showPages(files, pdfs, path, file, wantedLines)
    : await showFile(files, path, file, wantedLines)
  if (!outcome.error) await files.noteRead(file)
  return outcome
}

function showPages(files: AgentFiles, pdfs: PdfReader, path: string, { bytes }: FoundFile, wantedLines: WantedLines) {
  const { pages: range, signal } = wantedLines
  return showPdf(pdfs, { path, bytes, range, signal, redact: files.redact, maxBytes: MAX_READ_BYTES })
}

async function showFile(
  files: AgentFiles,
  path: string,
  file: FoundFile,
  wantedLines: WantedLines,
): Promise<ToolOutcome> {
  const { bytes } = file
  if (bytes.length > MAX_FILE_BYTES) throw isTooLarge(path, bytes.length, MAX_FILE_BYTES)
  const type = imageType(bytes)
  return type ? showImage(path, type, bytes) : viewOutcome(await show(files, path, file, wantedLines))
}

async function show(
  files: AgentFiles,
  path: string,
  { bytes }: FoundFile,
  { first, limit }: WantedLines,
): Promise<View> {
  const { text: writtenText, encoding } = decode(path, bytes)
  await yieldToLoop()
  const notebook = path.endsWith('.ipynb') ? notebookText(writtenText) : undefined
  const text = notebook ?? writtenText
  const count = countLines(text)
  if (count === 0) return { text: `The file ${path} is empty.`, isCut: false }
  if (first > count) throw new EditorError(`${path} has ${count} lines; \`offset\` ${first} is behind its end.`)
  const last = Math.min(count, first - 1 + Math.min(limit, MAX_READ_LINES))
  const { lines, isCut } = await numberLines(text, { first, last }, files.redact, READ_BOUNDS)
  const shownTo = first - 1 + lines.length
  const notes = [
    encoding === 'latin-1' && '[The file is not UTF-8; its bytes are shown as Latin-1.]',
    notebook !== undefined && '[This is a notebook, shown as text. In the file itself it is JSON.]',
    shownTo < count && `[Lines ${shownTo + 1} to ${count} are not shown. Continue with offset ${shownTo + 1}.]`,
  ].filter((note) => note !== false)
  // Do not cut a part that was requested explicitly.
  const isShort = isCut || (shownTo < count && lines.length < limit)
  return { text: [...lines, ...notes].join('\n'), isCut: isShort }
}

const READ_BOUNDS = {
  lineChars: MAX_READ_LINE_CHARS,
  size: MAX_READ_BYTES,
  sizeOf: (line: string) => Buffer.byteLength(line),
}
