/**
 * The program that extracts the text of a PDF, in its own process: the PDF on standard input, a `PdfAnswer` as JSON on
 * standard output. `pdf-reader.ts` starts it and limits what it can reach. Plain JavaScript: WebAssembly is turned off
 * for it, and Node needs that to remove types.
 */
// @ts-check
import { getDocument, PasswordException } from 'unpdf/pdfjs'

/** @import { PdfAnswer } from './pdf-answer.ts' */

/** Maximum characters of all pages together. The tool shows less. */
const MAX_CHARS = 400_000

/** Control characters except tab and line feed. */
// oxlint-disable-next-line no-control-regex -- a PDF can contain them, and a model cannot read them
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f]/g

const OPTIONS = {
  verbosity: 0,
  disableFontFace: true,
  useSystemFonts: false,
  useWorkerFetch: false,
  useWasm: false,
  enableXfa: false,
}

void main(process.argv.slice(3).map(Number))

/** @param {number[]} range first page, last page, and the most pages that a document may have; 0 for any number */
async function main([first = 1, last = 1, most = 0]) {
  const answer = await extract(await readInput(), first, last, most).catch(refusal)
  process.stdout.write(JSON.stringify(answer), () => process.exit())
}

async function readInput() {
  const chunks = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  return new Uint8Array(Buffer.concat(chunks))
}

/**
 * @param {Uint8Array} data
 * @param {number} first
 * @param {number} last
 * @param {number} most
 * @returns {Promise<PdfAnswer>}
 */
async function extract(data, first, last, most) {
  const document = await getDocument({ data, ...OPTIONS }).promise
  const total = document.numPages
  const end = most > 0 && total > most ? 0 : Math.min(last, total)
  const pages = []
  let room = MAX_CHARS
  for (let number = first; number <= end && room > 0; number++) {
    // A page that cannot be read does not prevent reading the others.
    const text = await textOf(document, number, room).catch(() => null)
    room -= text?.length ?? 0
    pages.push({ number, text })
  }
  return { total, pages }
}

/**
 * Reads a page piece by piece: a small file can contain gigabytes of text.
 * @param {import('unpdf/pdfjs').PDFDocumentProxy} document
 * @param {number} number
 * @param {number} room
 */
async function textOf(document, number, room) {
  const page = await document.getPage(number)
  const reader = page.streamTextContent().getReader()
  let text = ''
  for (let read = await reader.read(); !read.done && text.length < room; read = await reader.read())
    for (const item of read.value.items) text += `${item.str ?? ''}${item.hasEOL ? '\n' : ''}`
  return text.slice(0, room).replaceAll(CONTROLS, '').toWellFormed().trim()
}

/**
 * @param {unknown} error
 * @returns {PdfAnswer}
 */
function refusal(error) {
  return { refusal: error instanceof PasswordException ? 'encrypted' : 'broken' }
}
