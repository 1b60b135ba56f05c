/** What a step costs more with 200 tools of an MCP server: they are in each request to the model. */
import { join } from 'node:path'
import { startModel } from './model-process.ts'
import { inTurn, timesOfRun } from './steps.ts'
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
  await using server = await startAgentServer(model.url)
  const mcp = { mcpServers: { bench } }
  const sides: Record<'none' | 'many', Subject> = {
    none: server,
    many: { ...server, create: () => server.create(['Bash'], { mcp }) },
  }
  const measured = await inTurn(
    sides,
    ROUNDS,
    async (subject) => median(await timesOfRun(subject, model, STEPS)),
    WARM_UP_ROUNDS,
  )
  const [many, none] = [median(measured.many), median(measured.none)]
  return [
    [
      'a step with 200 tools of an MCP server',
      `${many.toFixed(2)} ms`,
      `${(many / none).toFixed(2)} of ${none.toFixed(2)} ms without them`,
    ],
  ]
}
