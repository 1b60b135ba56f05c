/**
 * Turns a web page into Markdown: headings, paragraphs, lists, links, code and tables, without scripts and styles. Own code
 * on a streaming parser and not `turndown`: that takes 2 ms for each KB and 7 s for 20,000 nested tags, all in one go; here
 * 0.6 MB take 0.14 s, and others have a turn in between.
 */
import type { Slices } from '../../lib/time-slices.ts'
import { createSlices } from '../../lib/time-slices.ts'

/** `title` is that of the page. */
export type MarkdownPage = { readonly title: string; readonly text: string }

/** Characters that are parsed before others get a turn. */
const PIECE = 16 * 1024

/** Deeper tags make the parser slow; what is in them is left out. */
const MAX_DEPTH = 500

/** `base` is the address that links are relative to. */
export async function htmlToMarkdown(
  html: string,
  base: string,
  slices: Slices = createSlices(),
): Promise<MarkdownPage> {
  const { Parser } = await import('htmlparser2')
  const writer = new MarkdownWriter(base)
  const tags = { depth: 0 }
  const parser = new Parser({
    onopentag: (name, attributes) => {
      if (++tags.depth > MAX_DEPTH) parser.end()
      else writer.open(name, attributes)
    },
    onclosetag: (name) => {
      tags.depth--
      writer.close(name)
    },
    ontext: (text) => writer.text(text),
  })
  const isOpen = () => tags.depth <= MAX_DEPTH
  for (let at = 0; at < html.length && isOpen(); at += PIECE) {
    parser.write(html.slice(at, at + PIECE))
    await slices.rest()
  }
  if (isOpen()) parser.end()
  return writer.page()
}

const SKIPPED = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'svg',
  'iframe',
  'object',
  'canvas',
  'select',
  'button',
])

const BLOCKS = new Set(
  'address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form header hr main nav ol p section summary table ul'.split(
    ' ',
  ),
)

const MARKS: ReadonlyMap<string, string> = new Map(
  Object.entries({ b: '**', strong: '**', em: '*', i: '*', code: '`', kbd: '`' }),
)

type Attributes = Readonly<Record<string, string>>

/** A list that is open; `next` is the number of its next item. */
type OpenList = { readonly isNumbered: boolean; next: number }

class MarkdownWriter {
  readonly #base: string
  readonly #out: string[] = []
  readonly #lists: OpenList[] = []
  readonly #links: (string | undefined)[] = []
  /** Line ends to write before the next text. */
  #pendingLines = 0
  #needsSpace = false
  #skipped = 0
  #isPlain = false
  #isTitle = false
  #title = ''
  #cells = 0
  #rows = 0

  constructor(base: string) {
    this.#base = base
  }

  page(): MarkdownPage {
    return { title: this.#title.replace(/\s+/g, ' ').trim(), text: this.#out.join('').trim() }
  }

  open(name: string, attributes: Attributes): void {
    if (SKIPPED.has(name)) this.#skipped++
    if (this.#skipped > 0) return
    if (name === 'title') this.#isTitle = true
    else if (BLOCKS.has(name)) this.#lines(2)
    if (name === 'table') this.#rows = 0
    const opening = OPENED.get(name)
    const mark = MARKS.get(name)
    if (opening) opening(this, attributes)
    else if (/^h[1-6]$/.test(name)) this.#begin(`${'#'.repeat(Number(name[1]))} `)
    else if (mark !== undefined && !this.#isPlain) this.#put(mark, { joins: 'right' })
  }

  close(name: string): void {
    if (SKIPPED.has(name)) this.#skipped = Math.max(0, this.#skipped - 1)
    else if (this.#skipped > 0) return
    if (name === 'title') this.#isTitle = false
    CLOSED.get(name)?.(this)
    const mark = MARKS.get(name)
    if (mark !== undefined && !this.#isPlain) this.#put(mark, { joins: 'left' })
    if (BLOCKS.has(name) || /^h[1-6]$/.test(name)) this.#lines(2)
  }

  text(text: string): void {
    if (this.#isTitle) this.#title += text.slice(0, MAX_TITLE_CHARS - this.#title.length)
    else if (this.#skipped > 0) return
    else if (this.#isPlain) this.#put(text, { joins: 'both' })
    else this.#flow(text)
  }

  /** Words, with one space where there is any white space. */
  #flow(text: string): void {
    const words = text.replace(/\s+/g, ' ')
    if (words.startsWith(' ')) this.#needsSpace = true
    const bare = words.trim()
    if (bare === '') return
    this.#put(bare)
    this.#needsSpace = words.endsWith(' ')
  }

  startList(isNumbered: boolean, first: number): void {
    this.#lists.push({ isNumbered, next: first })
  }

  endList(): void {
    this.#lists.pop()
  }

  startItem(): void {
    const list = this.#lists.at(-1)
    const mark = list?.isNumbered ? `${list.next++}. ` : '- '
    this.#lines(1)
    this.#begin('  '.repeat(Math.max(0, Math.min(this.#lists.length, 8) - 1)) + mark)
  }

  startLink(href: string | undefined): void {
    const url = href === undefined ? null : URL.parse(href, this.#base)
    const target = url && /^(https?|mailto):$/.test(url.protocol) ? url.href : undefined
    this.#links.push(target)
    if (target !== undefined) this.#put('[', { joins: 'right' })
  }

  endLink(): void {
    const target = this.#links.pop()
    if (target === undefined) return
    const [before] = this.#out.splice(-1)
    // A link without words says nothing.
    if (before === '[') return
    this.#out.push(before ?? '', `](${target})`)
  }

  image({ alt = '', src }: Attributes): void {
    const url = src === undefined ? null : URL.parse(src, this.#base)
    if (alt !== '' && url?.protocol.startsWith('http')) this.#put(`![${alt.replace(/\s+/g, ' ')}](${url.href})`)
  }

  startPlain(): void {
    this.#lines(2)
    this.#begin('```\n')
    this.#isPlain = true
  }

  endPlain(): void {
    this.#isPlain = false
    this.#put(this.#out.at(-1)?.endsWith('\n') ? '```' : '\n```', { joins: 'left' })
    this.#lines(2)
  }

  line(count: number): void {
    this.#lines(count)
  }

  rule(): void {
    this.#put('---')
    this.#lines(2)
  }

  startRow(): void {
    this.#lines(1)
    this.#cells = 0
  }

  startCell(): void {
    this.#put(this.#cells++ === 0 ? '| ' : ' | ', { joins: 'both' })
  }

  /** The first row is the head of the table, which Markdown wants one to have. */
  endRow(): void {
    if (this.#cells === 0) return
    this.#put(' |', { joins: 'left' })
    this.#lines(1)
    if (this.#rows++ === 0) this.#put(`|${' --- |'.repeat(Math.min(this.#cells, 100))}`)
    this.#lines(1)
  }

  #begin(mark: string): void {
    this.#lines(1)
    this.#put(mark, { joins: 'both' })
  }

  #lines(count: number): void {
    this.#pendingLines = Math.max(this.#pendingLines, count)
    this.#needsSpace = false
  }

  /** `joins`: at which side no space may stand that the text before has asked for. */
  #put(text: string, { joins = 'none' }: { joins?: 'none' | 'left' | 'right' | 'both' } = {}): void {
    const isJoined = joins === 'left' || joins === 'both'
    if (this.#pendingLines > 0 && this.#out.length > 0 && joins !== 'left')
      this.#out.push('\n'.repeat(this.#pendingLines))
    else if (this.#needsSpace && !isJoined && this.#out.length > 0) this.#out.push(' ')
    if (joins !== 'left') this.#pendingLines = 0
    if (!isJoined) this.#needsSpace = false
    this.#out.push(text)
  }
}

const MAX_TITLE_CHARS = 500

type Handle = (writer: MarkdownWriter, attributes: Attributes) => void

/** Maps, because a page may have a tag of any name, such as `constructor`. */
const OPENED: ReadonlyMap<string, Handle> = new Map(
  Object.entries<Handle>({
    ul: (writer) => writer.startList(false, 1),
    ol: (writer, { start }) => writer.startList(true, Number.parseInt(start ?? '1', 10) || 1),
    li: (writer) => writer.startItem(),
    a: (writer, { href }) => writer.startLink(href),
    img: (writer, attributes) => writer.image(attributes),
    pre: (writer) => writer.startPlain(),
    br: (writer) => writer.line(1),
    hr: (writer) => writer.rule(),
    tr: (writer) => writer.startRow(),
    td: (writer) => writer.startCell(),
    th: (writer) => writer.startCell(),
  }),
)

const CLOSED: ReadonlyMap<string, (writer: MarkdownWriter) => void> = new Map(
  Object.entries<(writer: MarkdownWriter) => void>({
    ul: (writer) => writer.endList(),
    ol: (writer) => writer.endList(),
    a: (writer) => writer.endLink(),
    pre: (writer) => writer.endPlain(),
    tr: (writer) => writer.endRow(),
  }),
)
