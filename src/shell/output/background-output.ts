/** Writes the output of background processes after their command has ended, to files of limited size. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { makeDirectoriesSync } from '../../files/make-directories.ts'
import { CappedFile, type CappedFileOptions } from './capped-file.ts'
import type { FinishedOutput } from './output-capture.ts'
import type { OutputFifo } from './output-fifo.ts'
import type { OutputFiles } from '../shell.ts'
import type { OutputPipes } from '../shell-files.ts'

/** The name within the output directory. */
export const BACKGROUND_DIRECTORY = 'background'

/** The limit per shell. Each uses up to two pipes and a file. */
const MAX_BACKGROUND_OUTPUTS = 64
const SLOW_READ_MS = 100

export type BackgroundOptions = {
  readonly outputDir: string
  /** Maximum bytes of a file that no command requested. */
  readonly limits: { readonly backgroundBytes: number }
}

/** The files that a command requested, and their current contents. */
export type BegunFiles = {
  readonly outputs: OutputFiles
  readonly finished: { readonly stdout: FinishedOutput; readonly stderr: FinishedOutput }
}

export class BackgroundOutputs {
  readonly #options: BackgroundOptions
  readonly #open = new Set<OutputFifo>()

  constructor(options: BackgroundOptions) {
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /**
   * Takes over pipes until no process holds them. Further output goes to the command's own files, or to one for both
   * streams. Returns a sentence for the result, if there is something to report.
   */
  adopt({ stdout, stderr }: OutputPipes, begunFiles: BegunFiles | undefined): string | undefined {
    if (this.#open.size >= MAX_BACKGROUND_OUTPUTS) {
      for (const pipe of [stdout, stderr]) pipe.close()
      return 'Too many background processes write to their shell: this one has no output. Redirect it to a file.'
    }
    if (begunFiles) {
      this.#goOn({ stdout, stderr }, begunFiles)
      return undefined
    }
    const directory = join(this.#options.outputDir, BACKGROUND_DIRECTORY)
    const path = join(directory, `${randomUUID()}.log`)
    const fault = makeDirectory(directory)
    this.#collect([stdout, stderr], { path, limit: this.#options.limits.backgroundBytes })
    if (fault) return `Output of background processes is lost: ${fault}.`
    return `Output of background processes goes to ${path}.`
  }

  close(): void {
    for (const fifo of this.#open) fifo.close()
  }

  #goOn(pipes: OutputPipes, { outputs, finished }: BegunFiles): void {
    const { limit, onWritten, onClosed } = outputs
    let open = 2
    for (const stream of ['stdout', 'stderr'] as const) {
      const options = { path: outputs[stream].path, limit, length: finished[stream].bytes, onWritten }
      this.#collect([pipes[stream]], options, () => --open === 0 && onClosed())
    }
  }

  #collect(
    fifos: readonly OutputFifo[],
    options: Omit<CappedFileOptions, 'onDrain'>,
    onEnd: () => void = () => {},
  ): void {
    const file = new CappedFile({ ...options, onDrain: () => fifos.forEach((fifo) => fifo.resume()) })
    const pending = new Set(fifos)
    for (const fifo of fifos) {
      this.#open.add(fifo)
      fifo.retire(
        (bytes) => (file.isFull ? readSlowly(fifo) : file.write(bytes)),
        () => {
          this.#open.delete(fifo)
          pending.delete(fifo)
          if (pending.size === 0) void file.end().then(onEnd)
        },
      )
    }
  }
}

/** Returns why it could not be made. Never throws: the command has run, and its result must not be lost. */
function makeDirectory(path: string): string | undefined {
  try {
    makeDirectoriesSync(path)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** A process may write more than its file can hold, but only at a rate that costs the server little. */
export function readSlowly(fifo: OutputFifo): false {
  setTimeout(() => fifo.resume(), SLOW_READ_MS).unref()
  return false
}
