/**
 * Captures one output stream of one command: shows it live, keeps a bounded part for the result, and writes all of it
 * to a file if requested or if it is long.
 */
import { rename } from 'node:fs/promises'
import { CappedFile } from './capped-file.ts'
import { HeadTail } from './head-tail.ts'
import { completeUtf8Length, firstUtf8Start } from '../../lib/text/utf8-border.ts'

export type FinishedOutput = {
  readonly text: string
  /** Size of the whole stream. */
  readonly bytes: number
  /** The file with the complete output, if `text` is shortened. */
  readonly fullOutputPath?: string
  readonly note?: string
}

export type CommandOutputOptions = {
  /** Bytes kept for the result, half of them from the end. */
  readonly keptBytes: number
  /** The file for the complete output: from the first byte, or when the result cannot hold all of it. */
  readonly file: {
    readonly path: string
    /** The path that the result shows to its readers. */
    readonly shownPath: string
    readonly limit: number
    readonly from: 'first-byte' | 'overflow'
  }
  readonly onText: ((text: string, offset: number) => void) | undefined
  /** The file can continue after `write` returned false. */
  readonly onDrain: () => void
  /** Called when more of the file can be read. */
  readonly onWritten?: () => void
  /** The file is full: the rest of this stream is not written. Returns true if it is still read immediately. */
  readonly onFull: () => boolean
}

/** Limit of the live output; the rest is in the result and its file. */
const MAX_LIVE_BYTES = 16 * 1024 ** 2

/**
 * The end of a file's name until its command has ended. If the server is killed before that, no result names the file, and the
 * next start removes it (`left-shells.ts`).
 */
const UNFINISHED = '.new'

const isForResult = ({ from }: CommandOutputOptions['file']): boolean => from === 'overflow'

export class OutputCapture {
  readonly #options: CommandOutputOptions
  readonly #headTail: HeadTail
  #file: CappedFile | undefined
  /** The first bytes of an incomplete character. */
  #partial: Buffer = Buffer.alloc(0)
  #shown = 0

  constructor(options: CommandOutputOptions) {
    this.#options = options
    const tailLimit = Math.floor(options.keptBytes / 2)
    this.#headTail = new HeadTail({ headLimit: options.keptBytes - tailLimit, tailLimit })
  }

  /** Returns false if the writer should wait for `onDrain`. */
  write(bytes: Uint8Array): boolean {
    this.#show(bytes)
    const file = this.#needsFile(bytes.length) ? this.#openFile() : undefined
    this.#headTail.push(bytes)
    if (!file) return true
    const mayGoOn = file.write(bytes)
    return file.isFull ? this.#options.onFull() : mayGoOn
  }

  async finish(): Promise<FinishedOutput> {
    this.#showPartial()
    await this.#file?.end()
    if (this.#file) await this.#publish(this.#file)
    const isWhole = this.#headTail.omitted === 0
    return {
      text: isWhole ? this.#whole() : this.#shortened(),
      bytes: this.#headTail.total,
      ...(!isWhole && { fullOutputPath: this.#options.file.path }),
      ...(this.#file?.error && { note: `The full output could not be written: ${this.#file.error.message}.` }),
    }
  }

  #needsFile(more: number): boolean {
    return this.#options.file.from === 'first-byte' || this.#headTail.total + more > this.#options.keptBytes
  }

  #openFile(): CappedFile {
    if (this.#file) return this.#file
    const { file, onDrain, onWritten } = this.#options
    const path = isForResult(file) ? `${file.path}${UNFINISHED}` : file.path
    this.#file = new CappedFile({ ...file, path, onDrain, ...(onWritten && { onWritten }) })
    this.#file.write(this.#headTail.head())
    this.#file.write(this.#headTail.tail())
    return this.#file
  }

  async #publish(unfinishedFile: CappedFile): Promise<void> {
    const { file } = this.#options
    if (isForResult(file))
      await rename(unfinishedFile.path, file.path).catch((error: Error) => void (unfinishedFile.error ??= error))
  }

  #whole(): string {
    return Buffer.concat([this.#headTail.head(), this.#headTail.tail()]).toString()
  }

  #shortened(): string {
    const head = this.#headTail.head()
    const tail = this.#headTail.tail()
    const wholeHead = head.subarray(0, completeUtf8Length(head))
    const wholeTail = tail.subarray(firstUtf8Start(tail))
    const omittedBytes = this.#headTail.total - wholeHead.length - wholeTail.length
    return `${wholeHead.toString()}\n[… ${omittedBytes} bytes left out; the whole output is in ${this.#options.file.shownPath} …]\n${wholeTail.toString()}`
  }

  #show(bytes: Uint8Array): void {
    if (!this.#options.onText || this.#shown >= MAX_LIVE_BYTES) return
    const all = this.#partial.length > 0 ? Buffer.concat([this.#partial, bytes]) : Buffer.from(bytes)
    const complete = completeUtf8Length(all)
    this.#partial = all.subarray(complete)
    if (complete > 0) this.#emit(all.subarray(0, complete))
  }

  #showPartial(): void {
    if (this.#partial.length > 0) this.#emit(this.#partial)
  }

  #emit(bytes: Buffer): void {
    const offset = this.#shown
    this.#shown += bytes.length
    this.#options.onText?.(bytes.toString(), offset)
  }
}
