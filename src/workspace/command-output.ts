/** One output stream of one command: shown live, kept bounded for the result, and whole in a file when it is long. */
import { CappedFile } from '../lib/capped-file.ts'
import { HeadTail } from '../lib/head-tail.ts'
import { completeUtf8Length, firstUtf8Start } from '../lib/utf8-border.ts'

export type FinishedOutput = { readonly text: string; readonly fullOutputPath?: string; readonly note?: string }

export type CommandOutputOptions = {
  /** Bytes kept for the result, half of them from the end. */
  readonly keptBytes: number
  /** Where the whole goes when that is exceeded. */
  readonly fullOutputPath: string
  readonly onText: ((text: string, offset: number) => void) | undefined
  /** The file has caught up after `write` answered false. */
  readonly onDrain: () => void
  /** The file is full: nothing more of this stream is kept. */
  readonly onFull: () => void
}

const MAX_FULL_OUTPUT_BYTES = 1024 ** 3
/** Who watches live has seen enough after this; the rest is in the result and its file. */
const MAX_LIVE_BYTES = 16 * 1024 ** 2

export class CommandOutput {
  readonly #options: CommandOutputOptions
  readonly #kept: HeadTail
  #file: CappedFile | undefined
  /** The first bytes of a character whose others have not come yet. */
  #partial: Buffer = Buffer.alloc(0)
  #shown = 0

  constructor(options: CommandOutputOptions) {
    this.#options = options
    const tailLimit = Math.floor(options.keptBytes / 2)
    this.#kept = new HeadTail({ headLimit: options.keptBytes - tailLimit, tailLimit })
  }

  /** Answers false when the writer should wait for `onDrain`. */
  write(bytes: Uint8Array): boolean {
    this.#show(bytes)
    const begun = this.#kept.total + bytes.length > this.#options.keptBytes ? this.#openFile() : undefined
    this.#kept.push(bytes)
    if (!begun) return true
    const mayGoOn = begun.write(bytes)
    if (begun.isFull) this.#options.onFull()
    return mayGoOn
  }

  async finish(): Promise<FinishedOutput> {
    this.#showPartial()
    await this.#file?.end()
    if (!this.#file) return { text: Buffer.concat([this.#kept.head(), this.#kept.tail()]).toString() }
    return {
      text: this.#shortened(this.#file.path),
      fullOutputPath: this.#file.path,
      ...(this.#file.error && { note: `The full output could not be written: ${this.#file.error.message}.` }),
    }
  }

  #openFile(): CappedFile {
    if (this.#file) return this.#file
    const { fullOutputPath: path, onDrain } = this.#options
    this.#file = new CappedFile({ path, limit: MAX_FULL_OUTPUT_BYTES, onDrain })
    this.#file.write(this.#kept.head())
    this.#file.write(this.#kept.tail())
    return this.#file
  }

  #shortened(path: string): string {
    const head = this.#kept.head()
    const tail = this.#kept.tail()
    const wholeHead = head.subarray(0, completeUtf8Length(head))
    const wholeTail = tail.subarray(firstUtf8Start(tail))
    const omitted = this.#kept.total - wholeHead.length - wholeTail.length
    return `${wholeHead.toString()}\n[… ${omitted} bytes left out; the whole output is in ${path} …]\n${wholeTail.toString()}`
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
