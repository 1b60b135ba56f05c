/** What presets of tools cost: the time of a step with every tool, and bytes of each request to the model. */
import { presetCosts } from '../scripts/tool-costs.ts'
import { TOOL_NAMES } from '../src/tools/registry.ts'
import { startModel } from './model-process.ts'
import { enqueue, timesOfRun } from './steps.ts'
import type { Subject } from './subjects.ts'
import { startAgentServer } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 9
const WARM_UP_ROUNDS = 8
const STEPS = 50

/** Needs a key of a search engine. */
const WITH_KEY = new Set<string>(['WebSearch'])

export async function benchPresets(): Promise<Row[]> {
  await using model = await startModel()
  await using server = await startAgentServer(model.url)
  const withTools = (tools: string | readonly string[]): Subject => ({ ...server, create: () => server.create(tools) })
  const sides = { default: withTools('default'), all: withTools(TOOL_NAMES.filter((name) => !WITH_KEY.has(name))) }
  const measured = await enqueue(
    sides,
    ROUNDS,
    async (subject) => median(await timesOfRun(subject, model, STEPS)),
    WARM_UP_ROUNDS,
  )
  const [all, usual] = [median(measured.all), median(measured.default)]
  return [
    [
      'a step with all tools',
      `${all.toFixed(2)} ms`,
      `${(all / usual).toFixed(2)} of ${usual.toFixed(2)} ms with the default preset`,
    ],
    ...presetCosts().map(({ preset, prompt, schemas }): Row => [
      `system prompt and tools of the preset ${preset}`,
      `${prompt + schemas} bytes`,
      `${prompt} and ${schemas} bytes, in each request`,
    ]),
  ]
}
