/** A subagent as the state has it. */
import { NO_AGENT } from '../../src/state/state-shape.ts'
import type { Subagent } from '../../src/state/state-shape.ts'

export const agent = (
  toolUseId: string,
  fields: Partial<Subagent> = {},
  parts: Partial<Subagent['agent']> = {},
): Subagent => ({
  toolUseId,
  callerId: undefined,
  agentId: `agent of ${toolUseId}`,
  name: 'reviewer',
  tools: ['Bash'],
  deny: [],
  model: undefined,
  mode: undefined,
  isBackground: false,
  firstSeq: 1,
  agent: { ...NO_AGENT, ...parts },
  ...fields,
})
