/** Keeps standard output for messages of a protocol. */
import { Writable } from 'node:stream'
import { sayError } from '../terminal/terminal.ts'

/** What a library prints on standard output goes to standard error. */
export class ProtocolOutput implements Disposable {
  readonly stream: WritableStream<Uint8Array>
  readonly #log = console.log

  constructor() {
    this.stream = Writable.toWeb(process.stdout)
    // oxlint-disable-next-line no-console -- it is replaced, not used
    console.log = console.info = console.debug = (...words: unknown[]) => sayError(`${words.map(String).join(' ')}\n`)
  }

  [Symbol.dispose](): void {
    // oxlint-disable-next-line no-console -- it is restored
    console.log = this.#log
  }
}
