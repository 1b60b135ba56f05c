/** Which model a subagent has. */
import { expect, test } from 'vitest'
import type { LlmConfig } from '../../src/contract/values/llm-config.ts'
import type { Subagent } from '../../src/state/state-shape.ts'
import { EMPTY_STATE, NO_AGENT } from '../../src/state/state-shape.ts'
import { stateWithModel } from '../../src/conversations/subagents/build-subagent.ts'

const subagent: Subagent = {
  toolUseId: 'call_1',
  callerId: undefined,
  agentId: 'a',
  name: 'worker',
  tools: [],
  deny: [],
  model: 'openai/small',
  mode: undefined,
  isBackground: false,
  firstSeq: 1,
  agent: NO_AGENT,
}
const configOf = (llm_config: LlmConfig) =>
  stateWithModel({ ...EMPTY_STATE, settings: { ...EMPTY_STATE.settings, llm_config } }, subagent).settings.llm_config

test('it has its own model at the endpoint of the conversation, and no costs of the other model', () => {
  const config = { model: 'openai/large', input_cost_per_token: 1, temperature: 0 }
  expect(configOf(config)).toEqual({ model: 'openai/small', temperature: 0 })
  expect(configOf(config), 'one object for one configuration').toBe(configOf(config))
})

test('after the conversation has moved to another endpoint, it has the model of the conversation: nothing is sent to the former one', () => {
  const moved = { model: 'anthropic/large' }
  expect(configOf(moved)).toBe(moved)
})
