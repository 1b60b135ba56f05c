/** Small PDFs for tests, written by hand. */
import { constants, deflateSync } from 'node:zlib'

/** A page is its text, or the bytes of its content, `times` over. `trailer` is added to the last dictionary; `count` is what it claims. */
export type PdfParts = {
  readonly pages: readonly (string | Buffer | Repeated)[]
  readonly trailer?: string
  readonly count?: number
}

type Repeated = { readonly part: Buffer; readonly times: number }

/** Pages with these lines of text, in compressed streams, and a table of references. */
export function makePdf({ pages, trailer = '', count = pages.length }: PdfParts): Buffer {
  const kids = pages.map((_, at) => `${4 + 2 * at} 0 R`).join(' ')
  return assemble(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Kids [${kids}] /Count ${count} >>`,
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
      ...pages.flatMap((page, at) => [pageObject(5 + 2 * at), streamObject(packed(page))]),
    ].map((object) => Buffer.from(object)),
    trailer,
  )
}

const pageObject = (content: number) =>
  `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${content} 0 R >>`

function packed(page: string | Buffer | Repeated): Buffer {
  if (typeof page === 'object' && 'part' in page) return packedTimes(page)
  if (typeof page !== 'string') return deflateSync(page)
  const lines = page.split('\n').map((line) => `(${line}) Tj T*`)
  return deflateSync(page === '' ? '0 0 100 100 re f' : `BT /F1 12 Tf 72 720 Td 14 TL ${lines.join(' ')} ET`)
}

/** Packs the part once: its blocks refer to nothing before them. Only the checksum at the end is that of nothing. */
function packedTimes({ part, times }: Repeated): Buffer {
  const [head, end] = [2, deflateSync('').subarray(2)]
  const blocks = deflateSync(part, { finishFlush: constants.Z_FULL_FLUSH })
  return Buffer.concat([blocks.subarray(0, head), ...Array.from({ length: times }, () => blocks.subarray(head)), end])
}

function streamObject(content: Buffer): Buffer {
  const head = `<< /Length ${content.length} /Filter /FlateDecode >>\nstream\n`
  return Buffer.concat([Buffer.from(head), content, Buffer.from('\nendstream')])
}

function assemble(objects: readonly Buffer[], trailer: string): Buffer {
  const parts = [Buffer.from('%PDF-1.7\n')]
  const offsets: number[] = []
  let end = parts[0]?.length ?? 0
  for (const [at, object] of objects.entries()) {
    const part = Buffer.concat([Buffer.from(`${at + 1} 0 obj\n`), object, Buffer.from('\nendobj\n')])
    offsets.push(end)
    end += part.length
    parts.push(part)
  }
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  const size = objects.length + 1
  const tail = `xref\n0 ${size}\n0000000000 65535 f \n${table}trailer\n<< /Size ${size} /Root 1 0 R ${trailer}>>\nstartxref\n${end}\n%%EOF\n`
  return Buffer.concat([...parts, Buffer.from(tail)])
}

/** Needs a password that nobody knows. */
export function makeEncryptedPdf(): Buffer {
  const hex = (byte: string, length: number) => `<${byte.repeat(length)}>`
  const encrypt = `<< /Filter /Standard /V 1 /R 2 /O ${hex('41', 32)} /U ${hex('42', 32)} /P -4 >>`
  return makePdf({ pages: ['secret'], trailer: `/Encrypt ${encrypt} /ID [${hex('43', 16)} ${hex('43', 16)}] ` })
}
