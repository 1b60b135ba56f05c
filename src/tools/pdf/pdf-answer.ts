/** What the program that reads PDFs answers, and which pages it can be asked for. */
import { z } from 'zod'
import { EditorError } from '../editor/editor-faults.ts'

/** `text` is null if the page cannot be read. The answer has fewer pages than requested if the text is very long. */
export const PdfAnswer = z.union([
  z.object({ refusal: z.enum(['encrypted', 'broken']) }),
  z.object({
    total: z.number(),
    pages: z.array(z.object({ number: z.int(), text: z.string().nullable() })),
  }),
])
export type PdfAnswer = z.infer<typeof PdfAnswer>

export type PdfText = Extract<PdfAnswer, { pages: unknown }>

/** Both ends are inclusive. */
export type PageRange = { readonly first: number; readonly last: number }

/** Maximum number of pages per call. */
export const MAX_PDF_PAGES = 20

/** A PDF with more pages needs a range: its whole text would fill the context of the model. */
export const MAX_PAGES_WITHOUT_RANGE = 10

/** Reads `3` or `1-5`. Throws an `EditorError`. */
export function pagesOf(pages: string | undefined): PageRange | undefined {
  if (pages === undefined) return undefined
  const [, from, to] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(pages.trim()) ?? []
  const [first, last] = [Number(from), Number(to ?? from)]
  if (from === undefined || first < 1 || last < first)
    throw new EditorError(`Invalid \`pages\`: ${pages}. It is a page or a range, counted from 1: "3" or "1-5".`)
  if (last - first >= MAX_PDF_PAGES)
    throw new EditorError(`Invalid \`pages\`: ${pages}. One call reads at most ${MAX_PDF_PAGES} pages.`)
  return { first, last }
}
