/** `agent-server scripted-model`: runs a stand-in for a model until a signal stops it. */
import { loadScript } from '../llm/scripted/script.ts'
import { startScriptedModel } from '../llm/scripted/scripted-model.ts'
import { endPreparation } from '../process-settings.ts'
import { DEMO_SCRIPT } from './demo/demo-script.ts'
import { onEndSignals } from './terminal/end-signals.ts'
import { say } from './terminal/terminal.ts'

export type ScriptedModelOptions = {
  readonly port: string | undefined
  /** Path of a JSON file. */
  readonly script: string | undefined
}

const DEFAULT_PORT = 8001

export async function scriptedModel({ port, script }: ScriptedModelOptions): Promise<void> {
  const turns = script === undefined ? DEMO_SCRIPT : await loadScript(script)
  await using model = await startScriptedModel(turns, { port: port === undefined ? DEFAULT_PORT : Number(port) })
  endPreparation()
  say(`A scripted model listens on ${model.baseUrl}. Use it with LLM_MODEL=scripted LLM_BASE_URL=${model.baseUrl}\n`)
  const stop = Promise.withResolvers<void>()
  using _signals = onEndSignals(() => stop.resolve())
  await stop.promise
}
