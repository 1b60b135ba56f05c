import { truncate } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createRead, MAX_READ_BYTES } from '../../../src/tools/files/read.ts'
import { createWrite } from '../../../src/tools/files/write.ts'
import { makeEncryptedPdf, makePdf } from '../../support/pdf.ts'
import { openFiles } from '../editor/editor-fixture.ts'

const openRead = () => openFiles(createRead)

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `Text of page ${at + 1}`)

/** Lines of 1,000 characters in a font so small that they fit on the page: text beside it is not part of the PDF. */
const smallPrint = (lines: number) =>
  Buffer.from(`BT /F1 0.05 Tf 10 780 Td 1 TL ${`(${'x'.repeat(1000)}) Tj T*\n`.repeat(lines)} ET`)

describe('Read shows of a PDF', () => {
  test('the text of each page with its number, under any name', async () => {
    const { write, say } = await openRead()
    await write('paper', makePdf({ pages: ['Hello, World\nsecond line', '', 'The end'] }))
    expect(await say({ file_path: 'paper' })).toBe(
      '[PDF with 3 pages; text of pages 1 to 3]\n\n[page 1]\nHello, World\nsecond line\n\n[page 2]\n\n\n[page 3]\nThe end',
    )
  })

  test('the requested pages, of any number of pages', async () => {
    const { write, say, fault } = await openRead()
    await write('long.pdf', makePdf({ pages: numbered(30) }))
    expect(await fault({ file_path: 'long.pdf' })).toMatch(/has 30 pages. Request at most 20 of them with `pages`/)
    expect(await say({ file_path: 'long.pdf', pages: '29-40' })).toBe(
      '[PDF with 30 pages; text of pages 29 to 30]\n\n[page 29]\nText of page 29\n\n[page 30]\nText of page 30',
    )
    expect(await fault({ file_path: 'long.pdf', pages: '31' })).toMatch(/has 30 pages; page 31 does not exist/)
  })

  test('as much as fits, and says where to continue', async () => {
    const { write, call } = await openRead()
    await write('dense.pdf', makePdf({ pages: [smallPrint(60), smallPrint(60), smallPrint(120)] }))
    const { output, truncated } = await call({ file_path: 'dense.pdf' })
    expect(output).toMatch(/^\[PDF with 3 pages; text of page 1\]/)
    expect(output).toMatch(/\[Pages 2 to 3 did not fit. Continue with pages "2-3".\]$/)
    expect(truncated).toBe(true)
    const last = await call({ file_path: 'dense.pdf', pages: '3' })
    expect(last.output).toMatch(/x\n\[The rest of page 3 is not shown.\]$/)
    expect(Buffer.byteLength(String(last.output))).toBeLessThan(MAX_READ_BYTES + 200)
  })

  test('what it can, when its table of references is damaged', async () => {
    const { write, say } = await openRead()
    const pdf = makePdf({ pages: ['still here'] })
    await write('a.pdf', Buffer.from(pdf.toString('latin1').replace(/startxref\n\d+/, 'startxref\n7'), 'latin1'))
    expect(await say({ file_path: 'a.pdf' })).toContain('still here')
  })

  test('only pages that exist, whatever number it claims', async () => {
    const { write, say } = await openRead()
    await write('a.pdf', makePdf({ pages: ['alone'], count: 1_000_000_000 }))
    expect(await say({ file_path: 'a.pdf' })).toBe('[PDF with 1 page; text of page 1]\n\n[page 1]\nalone')
  })

  test('enough that it can be replaced afterwards', async () => {
    const { write, say, callWith } = await openRead()
    await write('old.pdf', makePdf({ pages: ['old'] }))
    await say({ file_path: 'old.pdf' })
    expect((await callWith(createWrite, { file_path: 'old.pdf', content: 'new' })).error).toBeUndefined()
  })
})

describe('Read refuses of PDFs, and says why,', () => {
  test.each([
    ['one with a password', makeEncryptedPdf(), {}, /is encrypted and needs a password/],
    ['one that is no PDF behind its first bytes', Buffer.from('%PDF-1.7\nnothing'), {}, /is not a valid PDF/],
    ['one with images only', makePdf({ pages: ['', ''] }), {}, /has no text on pages 1 to 2 of 2.*pdftoppm/],
    ['pages that are not a range', makePdf({ pages: ['x'] }), { pages: '5-2' }, /Invalid `pages`: 5-2/],
    ['too many pages', makePdf({ pages: ['x'] }), { pages: '1-21' }, /at most 20 pages/],
    [
      'a compressed page of 512 MiB',
      makePdf({ pages: [{ part: Buffer.alloc(2 ** 20, 'q '), times: 512 }] }),
      {},
      /too much memory/,
    ],
  ])('%s', async (_, bytes, more, why) => {
    const { write, fault } = await openRead()
    await write('a.pdf', bytes)
    expect(await fault({ file_path: 'a.pdf', ...more })).toMatch(why)
  })

  test('too large ones, and other large files under such a name', async () => {
    const { write, fault, at } = await openRead()
    await write('large.pdf', '%PDF-1.7')
    await truncate(at('large.pdf'), 33 * 1024 * 1024)
    expect(await fault({ file_path: 'large.pdf' })).toMatch(/33 MiB; the limit is 32 MiB/)
    await write('text.pdf', 'text')
    await truncate(at('text.pdf'), 11 * 1024 * 1024)
    expect(await fault({ file_path: 'text.pdf' })).toMatch(/11 MiB; the limit is 10 MiB/)
  })

  test('deeply nested objects, page by page', async () => {
    const { write, call } = await openRead()
    const pdf = makePdf({ pages: ['x'] })
      .toString('latin1')
      .replace('[0 0 612 792]', '['.repeat(1_000_000))
    await write('deep.pdf', Buffer.from(pdf, 'latin1'))
    const { output } = await call({ file_path: 'deep.pdf' })
    expect(output).toMatch(/This page cannot be read|is not a valid PDF/)
  })

  test('nothing silently: an interrupted call says so', async () => {
    const { write, call } = await openRead()
    await write('a.pdf', makePdf({ pages: ['x'] }))
    const abort = new AbortController()
    const called = call({ file_path: 'a.pdf' }, { signal: abort.signal })
    abort.abort()
    expect((await called).error).toMatchObject({ type: 'interrupted' })
  })
})
