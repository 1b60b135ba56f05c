/**
 * Extracts the text of PDFs, each in its own process. A PDF can be made to exploit its parser, so that process has no
 * secrets, no access to files, network or other programs, no compiler for code at run time, and little time and memory.
 */
import { join } from 'node:path'
import { isSea } from 'node:sea'
import { withinTime } from '../../lib/bounded-wait.ts'
import { Queue } from '../../lib/queue.ts'
import { HostEnvironment, startProcess } from '../../lib/start-process.ts'
import type { PageRange } from './pdf-answer.ts'
import { MAX_PAGES_WITHOUT_RANGE, PdfAnswer } from './pdf-answer.ts'

/** The command of the executable that runs the program. */
export const PDF_COMMAND = 'pdf-text'

const PDF_TIMEOUT_MS = 20_000

/** PDFs of all conversations that are read at the same time. */
const CONCURRENT_PDFS = 2

/** The answer has at most 400,000 characters, with up to 3 bytes each. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/**
 * `-d` limits all memory that the process can write to, so also what is decompressed: V8's own limit does not include
 * that. `-t` ends the process if the server was killed. If the host is short of memory, the kernel is to kill this process
 * and not the server.
 */
const LIMITS = 'echo 1000 >/proc/self/oom_score_adj; ulimit -c 0; ulimit -d 524288; ulimit -t 30; exec "$@"'

/** The options are in the environment, since an executable takes options of Node only there. */
export const PDF_NODE_OPTIONS =
  '--permission --jitless --disallow-code-generation-from-strings --max-old-space-size=256'

/** The reason why there is no answer: it took too long, or the process ended without one. */
export type PdfFailure = { readonly refusal: 'late' | 'crashed' }

export type PdfReaderOptions = {
  /** Another program than the reader's own, for tests. */
  readonly program?: string
  readonly timeoutMs?: number
}

export class PdfReader {
  readonly #program: string | undefined
  readonly #timeoutMs: number
  readonly #queue = new Queue({ limit: CONCURRENT_PDFS })

  constructor({ program, timeoutMs = PDF_TIMEOUT_MS }: PdfReaderOptions = {}) {
    this.#program = program
    this.#timeoutMs = timeoutMs
  }

  /**
   * Reads all pages without a range, but none of a PDF with more than `MAX_PAGES_WITHOUT_RANGE`. Rejects with the
   * reason of the signal when that is aborted; the process has ended by then.
   */
  async read(pdf: Buffer, range: PageRange | undefined, signal: AbortSignal): Promise<PdfAnswer | PdfFailure> {
    const { first, last } = range ?? { first: 1, last: MAX_PAGES_WITHOUT_RANGE }
    const most = range === undefined ? MAX_PAGES_WITHOUT_RANGE : 0
    const command = commandOf(this.#program, [first, last, most].map(String))
    const work = () => withinTime(this.#timeoutMs, signal, (both) => run(command, pdf, both))
    const answer = await this.#queue.run(work, { signal })
    signal.throwIfAborted()
    return answer
  }
}

function commandOf(program: string | undefined, args: readonly string[]): string[] {
  if (isSea()) return [process.execPath, PDF_COMMAND, ...args]
  const path = program ?? join(import.meta.dirname, 'pdf-program.mjs')
  // The program itself may always be read, its package must be allowed.
  const root = join(import.meta.dirname, '../../..')
  return [process.execPath, `--allow-fs-read=${join(root, 'node_modules')}`, path, PDF_COMMAND, ...args]
}

/** Resolves when the process has ended; after an abort of the signal it is killed. */
async function run(command: readonly string[], pdf: Buffer, signal: AbortSignal): Promise<PdfAnswer | PdfFailure> {
  const child = startProcess('/bin/sh', ['-c', LIMITS, 'sh', ...command], {
    cwd: '/',
    env: HostEnvironment.ofNode(PDF_NODE_OPTIONS),
    stdio: ['pipe', 'pipe', 'ignore'],
    signal,
    killSignal: 'SIGKILL',
  })
  const closing = Promise.withResolvers<number | null>()
  // An abort is such an error, too. `close` follows if there was a process.
  child.on('error', (error) => child.pid === undefined && closing.reject(error)).once('close', closing.resolve)
  // oxlint-disable-next-line typescript/no-non-null-assertion -- both are pipes, by `stdio`
  const [stdin, stdout] = [child.stdin!, child.stdout!]
  // The process may end before it has read everything.
  stdin.on('error', () => {}).end(pdf)
  const chunks: Buffer[] = []
  let room = MAX_ANSWER_BYTES
  stdout.on('data', (chunk: Buffer) => {
    room -= chunk.length
    if (room < 0) child.kill('SIGKILL')
    else chunks.push(chunk)
  })
  const code = await closing.promise
  if (signal.aborted) return { refusal: 'late' }
  return code === 0 ? answerOf(Buffer.concat(chunks)) : { refusal: 'crashed' }
}

/** A hostile PDF that controls the process also controls its answer. */
function answerOf(bytes: Buffer): PdfAnswer | PdfFailure {
  try {
    return PdfAnswer.parse(JSON.parse(bytes.toString('utf8')))
  } catch {
    return { refusal: 'crashed' }
  }
}
