/** The process `agent-server acp`, and its standard input and output as a stream of the protocol's SDK. */
import type { Stream } from '@agentclientprotocol/sdk'
import { ndJsonStream } from '@agentclientprotocol/sdk'
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { commandLine } from '../../../support/server.ts'

export type AcpProcessOptions = {
  readonly args?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
}

export class AcpProcess implements AsyncDisposable {
  readonly child: ChildProcess
  readonly stream: Stream
  /** Everything that the process has written to standard output. */
  output = ''
  errors = ''
  readonly #exited: Promise<number | null>

  constructor({ args = [], env, cwd }: AcpProcessOptions) {
    const [command, ...rest] = commandLine(['acp', ...args])
    this.child = spawn(command, rest, {
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: process.env['TMPDIR'], ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(cwd !== undefined && { cwd }),
    })
    this.#exited = once(this.child, 'close').then(([code]) => code as number | null)
    this.child.stdin!.on('error', () => {}) // it was killed
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.errors += text))
    const lines = new TransformStream<Uint8Array, Uint8Array>({
      transform: (bytes, controller) => {
        this.output += Buffer.from(bytes).toString('latin1')
        controller.enqueue(bytes)
      },
    })
    const input = Readable.toWeb(this.child.stdout!) as ReadableStream<Uint8Array>
    this.stream = ndJsonStream(Writable.toWeb(this.child.stdin!), input.pipeThrough(lines))
  }

  /** Closes standard input, and returns the exit code. */
  async leave(): Promise<number | null> {
    this.child.stdin!.end()
    return await this.#exited
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
