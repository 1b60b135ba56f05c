/** `agent-server mcp`: agents as tools of other agents, by the Model Context Protocol on standard input and output. Ends with its input. */
import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { once } from 'node:events'
import { pipeline } from 'node:stream'
import type { McpInvocation } from '../command-line/read-arguments.ts'
import { OpenedOnce } from '../protocol/opened-once.ts'
import { ProtocolOutput } from '../protocol/protocol-output.ts'
import { onEndSignals } from '../terminal/end-signals.ts'
import { sayError, sayJson } from '../terminal/terminal.ts'
import { agentTools } from '../../protocols/mcp/agent-tools.ts'
import { clientAgents } from './client-agents.ts'
import { MAX_LINE_BYTES, MessageLines } from './message-lines.ts'
import { VERSION } from '../../wiring/version.ts'

class NotingTransport extends StdioServerTransport {
  readonly #lines: MessageLines

  constructor(lines: MessageLines) {
    super(lines, process.stdout, { maxBufferSize: MAX_LINE_BYTES })
    this.#lines = lines
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    await super.send(message)
    this.#lines.noteSent(message)
  }
}

/** Returns the exit code. */
export async function mcpServer({ run }: McpInvocation): Promise<number> {
  using _output = new ProtocolOutput()
  const directory = run.server === undefined ? process.cwd() : undefined
  await using host = new OpenedOnce({ ...run, cwd: directory })
  const ending = new AbortController()
  let exitCode = 0
  using _signals = onEndSignals((code) => {
    exitCode = code
    ending.abort()
  })
  const lines = new MessageLines(sayJson)
  lines.once('close', () => ending.abort())
  pipeline(process.stdin, lines, () => {}) // an error closes them
  const options = {
    openAgents: async () => clientAgents(await host.open(), directory),
    version: VERSION,
    hasProfiles: false,
    explain: (error: unknown) => (error instanceof Error ? error.message : String(error)),
  }
  const handle = serveStdio(() => agentTools(options), {
    transport: new NotingTransport(lines),
    onerror: (error) => sayError(`agent-server: ${error.message}\n`),
  })
  if (!ending.signal.aborted) await once(ending.signal, 'abort')
  lines.destroy()
  await handle.close()
  return exitCode
}
