/** What a step costs more with 200 tools of an MCP server: they are in each request to the model. */
import { dirname, join } from 'node:path'
import { KEY, URL } from './server-process.ts'
import { startModel } from './model-process.ts'
import { enqueue, timesOfRun } from './steps.ts'
import type { Subject } from './subjects.ts'
import { startAgentServer } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 9
const WARM_UP_ROUNDS = 8
const STEPS = 50

const bench = { command: process.execPath, args: [join(import.meta.dirname, 'mcp-server.ts')] }

export async function benchMcp(): Promise<Row[]> {
  await using model = await startModel()
  // The sandbox must show both, wherever the repository is.
  const visible = [dirname(process.execPath), import.meta.dirname].join(':')
  await using server = await startAgentServer(model.url, { OPENHANDS_SANDBOX_READABLE: visible })
  const mcp = { mcpServers: { bench } }
  const sides: Record<'none' | 'many', Subject> = {
    none: server,
    many: { ...server, create: () => server.create(['Bash'], { mcp }) },
  }
  const measured = await enqueue(
    sides,
    ROUNDS,
    async (subject) => median(await timesOfRun(subject, model, STEPS)),
    WARM_UP_ROUNDS,
  )
  await refuseUnconnected(await sides.many.create(), sides.many)
  const [many, none] = [median(measured.many), median(measured.none)]
  return [
    [
      'a step with 200 tools of an MCP server',
      `${many.toFixed(2)} ms`,
      `${(many / none).toFixed(2)} of ${none.toFixed(2)} ms without them`,
    ],
  ]
}

/** Throws if the server is not connected: without its tools, both sides would be the same. */
async function refuseUnconnected(id: string, subject: Subject): Promise<void> {
  await subject.run(id, { steps: 1 })
  const response = await fetch(`${URL}/conversations/${id}/mcp`, { headers: { authorization: `Bearer ${KEY}` } })
  const text = await response.text()
  if (!text.includes('mcp__bench__tool_199')) throw new Error(`The MCP server is not connected: ${text}`)
}
