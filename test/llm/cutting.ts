/** A recorded answer, given whole and cut at any byte: what a client may make of half of it. */
import type { LlmConfig } from '../../src/contract/values/llm-config.ts'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { ask, chatWith, QUESTION } from './asking.ts'
import type { Heard } from './asking.ts'

export type CutOptions = {
  readonly how: 'close' | 'break'
  readonly headers?: Record<string, string>
  /** Bytes from one cut to the next. */
  readonly step?: number
  readonly config?: LlmConfig
}

/** A dozen cuts at a time; the system prompt says where the script cuts. */
export async function cutEverywhere(
  bytes: Buffer,
  { how, headers, step = 1, config }: CutOptions,
  check: (heard: Heard, at: number) => void,
): Promise<void> {
  await using model = await startScriptedModel(({ text }): ScriptedTurn => {
    const piece = bytes.subarray(0, Number(/cut at (\d+)/.exec(text)?.[1]))
    return { ...(how === 'close' ? { raw: [piece] } : { raw: [piece, ''], cut_after: 1 }), ...(headers && { headers }) }
  })
  const llm = chatWith(model, config)
  const places = Array.from({ length: Math.ceil(bytes.length / step) }, (_, at) => at * step)
  while (places.length > 0) {
    const some = places.splice(0, 12)
    await Promise.all(some.map(async (at) => check(await ask(llm, { ...QUESTION, system: `cut at ${at}` }), at)))
  }
}
