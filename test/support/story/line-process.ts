/** A process that takes lines of JSON and prints events as lines of JSON: what a program and the command line share. */
import type { ChildProcessByStdio } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { createFrames } from '../frames.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- events and other lines as they come
type Line = any

export class LineProcess implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #frames = createFrames<Line>(({ type }) => type)
  readonly #taken = new Set<Line>()
  readonly #closed: Promise<unknown>

  constructor([command, ...args]: readonly [string, ...string[]], options: { env?: NodeJS.ProcessEnv; cwd?: string }) {
    this.#child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdin.on('error', () => {})
    this.#closed = once(this.#child, 'close')
    createInterface({ input: this.#child.stdout })
      .on('line', (line) => this.#frames.add(JSON.parse(line)))
      .on('close', () => this.#frames.end())
  }

  write(line: object): void {
    this.#child.stdin.write(`${JSON.stringify(line)}\n`)
  }

  /** The first line that fits and was not returned before, printed already or to come. */
  async next(fits: (line: Line) => boolean): Promise<Line> {
    const line = await this.#frames.until((each) => !this.#taken.has(each) && fits(each))
    this.#taken.add(line)
    return line
  }

  /** Resolves when there is such a line, which `next` still returns. */
  async has(fits: (line: Line) => boolean): Promise<void> {
    await this.#frames.until((each) => !this.#taken.has(each) && fits(each))
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  /** No more input. Resolves to the exit code. */
  async end(): Promise<number | null> {
    this.#child.stdin.end()
    await this.#closed
    return this.#child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.kill()
  }
}
