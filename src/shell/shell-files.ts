/** The server's files of one shell session: the command to run, the output pipes, the saved state. */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { access, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectoriesSync } from '../files/make-directories.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { HostEnvironment, runProgram } from '../lib/start-process.ts'
import { OutputFifo } from './output/output-fifo.ts'
import type { OutputFilter } from './shell.ts'

/** Name of the saved state in a session's directory. */
export const STATE_FILE = 'state'

export type OutputPipes = { readonly stdout: OutputFifo; readonly stderr: OutputFifo }

export class ShellFiles {
  readonly #directory: string
  readonly #keptDirectory: string
  readonly #createFilter: () => OutputFilter
  #scriptFd: number | undefined
  #scriptBytes = 0
  #pipes: OutputPipes | undefined
  #pipesMade = 0

  /** The shell's output and the saved state each pass through a filter. */
  constructor(directory: string, createFilter: () => OutputFilter, keptDirectory = directory) {
    this.#directory = directory
    this.#keptDirectory = keptDirectory
    this.#createFilter = createFilter
  }

  get scriptPath(): string {
    return join(this.#directory, 'command')
  }

  get statePath(): string {
    return join(this.#keptDirectory, STATE_FILE)
  }

  /** Overwrites the same file: creating or truncating one takes a millisecond on ext4, this takes a microsecond. */
  writeScript(command: string): void {
    const fd = (this.#scriptFd ??= this.#openScript())
    const bytes = Buffer.from(command)
    const before = this.#scriptBytes
    // Set before writing: on a full disk, a part may be written, and a later, shorter command must not end with it.
    this.#scriptBytes = Math.max(before, bytes.length)
    for (let writtenBytes = 0; writtenBytes < bytes.length;) {
      writtenBytes += writeSync(fd, bytes, writtenBytes, bytes.length - writtenBytes, writtenBytes)
    }
    if (bytes.length < before) ftruncateSync(fd, bytes.length)
    this.#scriptBytes = bytes.length
  }

  /** Opens all that a command needs. If that fails, a later call continues. `input`: the command reads from a pipe. */
  async openAll({ input }: { readonly input?: unknown }): Promise<{ pipes: OutputPipes; stdin: string | undefined }> {
    const pipes = await this.#openPipes()
    this.#scriptFd ??= this.#openScript()
    return { pipes, stdin: input === undefined ? undefined : await this.#makeInputPipe() }
  }

  /** Returns the same pipes until they are released, closed or spent. */
  async #openPipes(): Promise<OutputPipes> {
    if (this.#pipes?.stdout.isSpent || this.#pipes?.stderr.isSpent) this.#closePipes()
    return (this.#pipes ??= await this.#makePipes())
  }

  /** Leaves the pipes to a new owner, who closes them. */
  releasePipes(): void {
    this.#pipes = undefined
  }

  async #makePipes(): Promise<OutputPipes> {
    makeDirectoriesSync(this.#directory, 0o700)
    const number = ++this.#pipesMade
    const paths = [join(this.#directory, `stdout-${number}`), join(this.#directory, `stderr-${number}`)] as const
    await rm(paths[0], { force: true })
    await rm(paths[1], { force: true })
    await makeFifos(paths)
    const stdout = new OutputFifo(paths[0], this.#createFilter())
    try {
      return { stdout, stderr: new OutputFifo(paths[1], this.#createFilter()) }
    } catch (error) {
      stdout.close()
      throw error
    }
  }

  #closePipes(): void {
    this.#pipes?.stdout.close()
    this.#pipes?.stderr.close()
    this.#pipes = undefined
  }

  /** Creates a pipe for a command to read from; connecting to it removes its name. */
  async #makeInputPipe(): Promise<string> {
    makeDirectoriesSync(this.#directory, 0o700)
    const path = join(this.#directory, `stdin-${++this.#pipesMade}`)
    await rm(path, { force: true })
    await makeFifos([path])
    return path
  }

  /** Filtered too: a command may have copied a secret into one of its variables. */
  async saveState(state: Buffer): Promise<void> {
    const filter = this.#createFilter()
    const safe = Buffer.concat([filter.push(state), filter.flush()])
    makeDirectoriesSync(this.#keptDirectory, 0o700)
    await replaceFile(this.statePath, safe, { durable: false, draft: `${this.statePath}.new` })
  }

  async hasState(): Promise<boolean> {
    return access(this.statePath).then(
      () => true,
      () => false,
    )
  }

  async forgetState(): Promise<void> {
    await rm(this.statePath, { force: true })
  }

  #openScript(): number {
    makeDirectoriesSync(this.#directory, 0o700)
    this.#scriptBytes = 0
    return openSync(this.scriptPath, 'w', 0o600)
  }

  /** Closes what only a running shell needs. */
  async closeAll(): Promise<void> {
    this.#closePipes()
    if (this.#scriptFd !== undefined) closeSync(this.#scriptFd)
    this.#scriptFd = undefined
    // The next shell overwrites it, and the result of a command must not be lost because of it.
    await rm(this.scriptPath, { force: true }).catch(() => {})
  }

  async removeAll(): Promise<void> {
    for (const path of new Set([this.#directory, this.#keptDirectory])) await rm(path, { recursive: true, force: true })
  }
}

/** Does not use the shells' search path, which may begin with a directory that agents can write to. */
async function makeFifos(paths: readonly string[]): Promise<void> {
  await runProgram('mkfifo', ['-m', '600', ...paths], { env: HostEnvironment.plain })
}
