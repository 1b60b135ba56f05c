/** Compares what a model was asked with what the log says that it was asked. */
import { expect } from 'vitest'
import { History } from '../../src/agent/history/history.ts'
import type { RenderOutput } from '../../src/agent/history/tool-messages.ts'
import type { Event, EventOf } from '../../src/contract/events/event.ts'
import type { LlmConfig } from '../../src/contract/values/llm-config.ts'
import { endpointOf } from '../../src/llm/endpoints/endpoint.ts'
import { adapterOf } from '../../src/llm/providers.ts'
import type { Script, ScriptedQuestion } from '../../src/llm/scripted/script.ts'
import { pickTurn } from '../../src/llm/scripted/script.ts'
import type { Tool } from '../../src/tools/tool.ts'

/** Makes the number of each request the input tokens of its answer. The estimates of the server then mean nothing. */
export function numbered(script: Script): { readonly script: Script; readonly asked: ScriptedQuestion[] } {
  const asked: ScriptedQuestion[] = []
  return {
    asked,
    script: async (question) => {
      const number = asked.push(question)
      const turn = await pickTurn(script, question)
      const usage = { prompt_tokens: number, completion_tokens: 1, input_tokens: number, output_tokens: 1 }
      return { ...turn, usage }
    },
  }
}

const CHAT: LlmConfig = { model: 'scripted', base_url: 'http://127.0.0.1/v1' }

/** Each stored answer is to a request that the log has, up to `read_through`. */
export function expectSentAsStored(
  events: readonly Event[],
  asked: readonly ScriptedQuestion[],
  { tools = [], config = CHAT }: { tools?: readonly Tool[]; config?: LlmConfig } = {},
): void {
  const render: RenderOutput = (name, output) => {
    const found = tools.find((tool) => tool.name === name)
    return typeof output === 'string' ? output : (found?.render?.(output) ?? JSON.stringify(output))
  }
  for (const [at, event] of events.entries()) {
    // One that was cut off before its usage came does not say which request it answers.
    if (event.type !== 'AssistantMessage' || (event.partial && event.usage.input_tokens === 0)) continue
    const { text } = asked[event.usage.input_tokens - 1]!
    const history = new History(render, { agentId: agentOf(events, event) })
    for (const before of events.slice(0, at)) if (before.seq <= event.read_through!) history.add(before)
    expect(messagesIn(text), `the request of ${event.message_id}`).toEqual(messagesIn(bodyOf(history, config)))
  }
}

const agentOf = (events: readonly Event[], { parent_tool_use_id: task }: EventOf<'AssistantMessage'>) =>
  events.find(
    (event): event is EventOf<'SubagentStart'> => event.type === 'SubagentStart' && event.parent_tool_use_id === task,
  )?.agent_id

function bodyOf(history: History, config: LlmConfig): string {
  const endpoint = endpointOf(config)
  const request = { system: history.system, messages: history.messagesToSend(), tools: [] }
  return adapterOf(config, endpoint, new Map()).formsOf(request).body.toString()
}

const messagesIn = (body: string): unknown => {
  const { messages, input } = JSON.parse(body) as { messages?: unknown; input?: unknown } // as the APIs name them
  return messages ?? input
}
