/**
 * `agent-server acp`: the agent of an editor, by the Agent Client Protocol on standard input and output. Ends with its input.
 * Only messages of the protocol are written to standard output.
 */
import { ndJsonStream } from '@agentclientprotocol/sdk'
import { Readable, Writable } from 'node:stream'
import type { AcpInvocation } from '../command-line/read-arguments.ts'
import { onEndSignals } from '../terminal/end-signals.ts'
import { say, sayError } from '../terminal/terminal.ts'
import { EditorAgent } from './agent-app.ts'
import type { EditorHost } from './editor-host.ts'
import { openEditorHost } from './editor-host.ts'

/** Returns the exit code. */
export async function acp({ run, setsUp }: AcpInvocation): Promise<number> {
  if (setsUp) return await setUp(run)
  using output = new ProtocolOutput()
  await using host = new OpenedOnce({ ...run, cwd: run.cwd ?? process.cwd() })
  const agent = new EditorAgent({ openHost: () => host.open(), isLocal: run.server === undefined })
  const input = Readable.toWeb(process.stdin)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of Node and of the web name the same class
  const stream = ndJsonStream(output.stream, input as ReadableStream<Uint8Array>)
  const connection = agent.app().connect(stream)
  let exitCode = 0
  using _signals = onEndSignals((code) => {
    exitCode = code
    connection.close()
  })
  // The first session need not wait for the start of the agents.
  host.open().catch(() => {}) // the session reports it
  await connection.closed
  agent.close()
  return exitCode
}

/** Asks for a model on a terminal, which an editor opens for it. */
async function setUp(run: AcpInvocation['run']): Promise<number> {
  const { readRunSettings } = await import('../settings/run-settings.ts')
  const { createFirstStart } = await import('../first-start/first-start.ts')
  await readRunSettings({ ...run, isHeadless: false }, new AbortController().signal, createFirstStart())
  say('A model is set. Go back to your editor.\n')
  return 0
}

/** Keeps standard output for the protocol: what a library prints there goes to standard error. */
class ProtocolOutput implements Disposable {
  readonly stream: WritableStream<Uint8Array>
  readonly #log = console.log

  constructor() {
    this.stream = Writable.toWeb(process.stdout)
    // oxlint-disable-next-line no-console -- it is replaced, not used
    console.log = console.info = console.debug = (...words: unknown[]) => sayError(`${words.map(String).join(' ')}\n`)
  }

  [Symbol.dispose](): void {
    // oxlint-disable-next-line no-console -- as it was
    console.log = this.#log
  }
}

/** What failed is tried again by the next one who needs it: a person may have set what was missing. */
class OpenedOnce implements AsyncDisposable {
  readonly #run: AcpInvocation['run']
  readonly #abort = new AbortController()
  #opening: Promise<EditorHost> | undefined

  constructor(run: AcpInvocation['run']) {
    this.#run = run
  }

  async open(): Promise<EditorHost> {
    const opening = (this.#opening ??= openEditorHost(this.#run, this.#abort.signal))
    try {
      return await opening
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort()
    const host = await this.#opening?.catch(() => undefined) // reported to who asked
    await host?.[Symbol.asyncDispose]()
  }
}
