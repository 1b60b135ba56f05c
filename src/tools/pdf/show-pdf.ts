/** Shows the text of a PDF page by page, or says why it cannot be read. */
import type { ToolErrorType } from '../../contract/events/status.ts'
import { EditorError } from '../editor/editor-faults.ts'
import type { Redact, View } from '../editor/file-view.ts'
import { viewOutcome } from '../editor/file-view.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { PageRange, PdfAnswer, PdfText } from './pdf-answer.ts'
import { MAX_PAGES_WITHOUT_RANGE, MAX_PDF_PAGES } from './pdf-answer.ts'
import type { PdfFailure, PdfReader } from './pdf-reader.ts'

/** Larger PDFs are not read. */
export const MAX_PDF_BYTES = 32 * 1024 * 1024

const PDF_HEAD = Buffer.from('%PDF-')

export const isPdf = (bytes: Buffer) => bytes.subarray(0, PDF_HEAD.length).equals(PDF_HEAD)

export type PdfQuestion = {
  readonly path: string
  readonly bytes: Buffer
  readonly range: PageRange | undefined
  readonly signal: AbortSignal
  readonly redact: Redact
  /** Maximum bytes of UTF-8 that are shown. */
  readonly maxBytes: number
}

/** Throws an `EditorError` if the requested pages do not exist or contain no text. */
export async function showPdf(reader: PdfReader, question: PdfQuestion): Promise<ToolOutcome> {
  try {
    const answer = await reader.read(question.bytes, question.range, question.signal)
    if ('refusal' in answer) return failureOf(question.path, ...REFUSALS[answer.refusal])
    return viewOutcome(await viewOf(answer, question))
  } catch (error) {
    if (question.signal.aborted)
      return failureOf(question.path, 'interrupted', 'was not read: the call was interrupted.')
    throw error
  }
}

type Refusal = Extract<PdfAnswer | PdfFailure, { refusal: string }>['refusal']

const REFUSALS: Readonly<Record<Refusal, readonly [ToolErrorType, string]>> = {
  encrypted: ['failed', 'is encrypted and needs a password. Use Bash: `pdftotext -upw PASSWORD FILE -`.'],
  broken: ['failed', 'is not a valid PDF: it is damaged or incomplete.'],
  late: ['timeout', 'took too long to read. Request fewer pages.'],
  crashed: ['failed', 'could not be read: it needs too much memory, or it crashes the parser. Request fewer pages.'],
}

const failureOf = (path: string, type: ToolErrorType, what: string): ToolOutcome => failure(type, `${path} ${what}`)

async function viewOf({ total, pages }: PdfText, question: PdfQuestion): Promise<View> {
  const { path, range } = question
  if (!range && total > MAX_PAGES_WITHOUT_RANGE)
    throw new EditorError(
      `${path} has ${total} pages. Request at most ${MAX_PDF_PAGES} of them with \`pages\`, for example "1-${MAX_PAGES_WITHOUT_RANGE}".`,
    )
  const { first, last } = { first: range?.first ?? 1, last: Math.min(range?.last ?? total, total) }
  if (first > last) throw new EditorError(`${path} has ${countPages(total)}; page ${first} does not exist.`)
  if (pages.every(({ text }) => text === ''))
    throw new EditorError(
      `${path} has no text on ${pagesText(first, last)} of ${total}: they are probably scanned images. Use Bash to convert them, for example \`pdftoppm -png\`, and read the images.`,
    )
  const { shown, isCut } = await fitting(pages, question)
  const next = first + shown.length
  const notes =
    next <= last ? [`[${capital(pagesText(next, last))} did not fit. Continue with pages "${next}-${last}".]`] : []
  const title = `[PDF with ${countPages(total)}; text of ${pagesText(first, next - 1)}]`
  return { text: [title, ...shown, ...notes].join('\n\n'), isCut: isCut || notes.length > 0 }
}

/** Returns at least one page, which is cut if it is too long. */
async function fitting(pages: PdfText['pages'], { maxBytes, redact }: PdfQuestion) {
  const shownPages: string[] = []
  let room = maxBytes
  for (const { number, text } of pages) {
    const page = `[page ${number}]\n${text ?? '[This page cannot be read.]'}`
    const size = Buffer.byteLength(page)
    // Redact it before the cut: a secret that is cut would not be found later.
    if (size > room && shownPages.length === 0)
      return {
        shown: [`${cutBytes(await redact(page), room)}\n[The rest of page ${number} is not shown.]`],
        isCut: true,
      }
    if (size > room) break
    room -= size
    shownPages.push(page)
  }
  return { shown: shownPages, isCut: false }
}

/** Returns at most so many bytes of UTF-8, without half a character. */
function cutBytes(text: string, most: number): string {
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(most)).read)
}

const pagesText = (first: number, last: number) => (first === last ? `page ${first}` : `pages ${first} to ${last}`)

const countPages = (pages: number) => (pages === 1 ? '1 page' : `${pages} pages`)

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
