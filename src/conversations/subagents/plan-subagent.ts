/** Plans the subagent of a `Task` call: a new one, or one that is continued. */
import { currentTools } from '../../contract/values/earlier-tools.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { TaskInput } from '../../tools/task/task-access.ts'
import type { State } from '../../state/state-shape.ts'
import { depthBelow } from '../../state/subagents.ts'
import { agentsIn, grant, limitsOf } from './definitions.ts'
import type { NewSubagent } from '../../state/subagent-intents.ts'
import { MAX_OPEN } from '../../state/subagent-intents.ts'
import type { SubagentStarts } from './subagent-starts.ts'

export type Caller = { readonly toolUseId: string; readonly callerId: string | undefined }

/** Why there is no subagent, for the model. */
type Fault = { readonly fault: string }

export async function planSubagent(
  starts: Pick<SubagentStarts, 'find'>,
  state: State,
  { toolUseId, callerId }: Caller,
  input: TaskInput,
): Promise<NewSubagent | Fault> {
  const { maxDepth } = limitsOf(state.settings)
  if (depthBelow(state, callerId) > maxDepth)
    return { fault: `Subagents are nested at most ${maxDepth} deep here; work on the task yourself.` }
  if (state.subagents.length >= MAX_OPEN)
    return { fault: `${MAX_OPEN} subagents are open already; wait until some of them have ended.` }
  const { description, prompt } = input
  const background = input.run_in_background
  const task = { parent_tool_use_id: toolUseId, description, prompt, background }
  if (input.resume !== undefined) return await planToContinue(starts, state, callerId, { task, agentId: input.resume })
  const agents = agentsIn(state.settings)
  const knownAgent = agents.find(({ name }) => name === input.subagent_type)
  if (!knownAgent)
    return {
      fault: `There is no agent named ${JSON.stringify(input.subagent_type)}. The agents are: ${agents.map(({ name }) => name).join(', ')}.`,
    }
  return { ...task, agent_name: knownAgent.name, agent_id: uuid7(), ...grant(state, callerId, knownAgent) }
}

type ContinuedAgent = {
  readonly task: Pick<NewSubagent, 'parent_tool_use_id' | 'description' | 'prompt' | 'background'>
  readonly agentId: string
}

/** It keeps what it was given, as far as its caller has it. */
async function planToContinue(
  starts: Pick<SubagentStarts, 'find'>,
  state: State,
  callerId: string | undefined,
  { task, agentId }: ContinuedAgent,
): Promise<NewSubagent | Fault> {
  if (state.subagents.some((each) => each.agentId === agentId))
    return { fault: `The subagent ${agentId} still works; wait until it has ended.` }
  const start = await starts.find(agentId)
  if (!start)
    return { fault: `There is no subagent ${JSON.stringify(agentId)}; use the agent_id of an earlier result.` }
  const { agent_name, disallowed_tools, model, permission_mode, max_steps, first_seq = start.seq } = start
  const definition = { description: '', prompt: start.system_prompt, tools: currentTools(start.tools) }
  const { tools } = grant(state, callerId, { name: agent_name, origin: 'request', definition })
  return {
    ...task,
    agent_name,
    agent_id: agentId,
    system_prompt: start.system_prompt,
    tools,
    ...(disallowed_tools && { disallowed_tools }),
    ...(model !== undefined && { model }),
    ...(permission_mode && { permission_mode }),
    ...(max_steps !== undefined && { max_steps }),
    first_seq,
  }
}
