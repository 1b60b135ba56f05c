/**
 * `agent-server acp`: the agent of an editor, by the Agent Client Protocol on standard input and output. Ends with its input.
 * Only messages of the protocol are written to standard output.
 */
import { ndJsonStream } from '@agentclientprotocol/sdk'
import { Readable } from 'node:stream'
import type { AcpInvocation } from '../command-line/read-arguments.ts'
import { onEndSignals } from '../terminal/end-signals.ts'
import { say, sayError } from '../terminal/terminal.ts'
import { connectEditor } from '../../protocols/acp/editor-agent.ts'
import { VERSION } from '../../wiring/version.ts'
import { nameOf } from '../conversation/describe-conversation.ts'
import { OpenedOnce } from '../protocol/opened-once.ts'
import { ProtocolOutput } from '../protocol/protocol-output.ts'

/** Returns the exit code. */
export async function acp({ run, setsUp }: AcpInvocation): Promise<number> {
  if (setsUp) return await setUp(run)
  using output = new ProtocolOutput()
  await using host = new OpenedOnce({ ...run, cwd: run.cwd ?? process.cwd() })
  const input = Readable.toWeb(process.stdin)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of Node and of the web name the same class
  const stream = ndJsonStream(output.stream, input as ReadableStream<Uint8Array>)
  const connection = connectEditor(stream, {
    openHost: () => host.open(),
    isLocal: run.server === undefined,
    usesEnvironment: true,
    version: VERSION,
    nameOf,
    warn: (text) => sayError(`agent-server: ${text}\n`),
  })
  let exitCode = 0
  using _signals = onEndSignals((code) => {
    exitCode = code
    connection.close()
  })
  // The first session need not wait for the start of the agents.
  host.open().catch(() => {}) // the session reports it
  await connection.closed
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
