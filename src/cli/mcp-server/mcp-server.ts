/** `agent-server mcp`: agents as tools of other agents, by the Model Context Protocol on standard input and output. Ends with its input. */
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { once } from 'node:events'
import type { McpInvocation } from '../command-line/read-arguments.ts'
import { OpenedOnce } from '../protocol/opened-once.ts'
import { ProtocolOutput } from '../protocol/protocol-output.ts'
import { onEndSignals } from '../terminal/end-signals.ts'
import { sayError } from '../terminal/terminal.ts'
import { agentTools } from './agent-tools.ts'

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
  process.stdin.once('end', () => ending.abort()).once('error', () => ending.abort())
  const handle = serveStdio(() => agentTools({ openHost: () => host.open(), directory }), {
    transport: new StdioServerTransport(),
    onerror: (error) => sayError(`agent-server: ${error.message}\n`),
  })
  if (!ending.signal.aborted) await once(ending.signal, 'abort')
  await handle.close()
  return exitCode
}
