/** A scripted model whose turns are planned by the messages of an agent, and what is true of every log with subagents. */
import { expect } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- events as they come over HTTP
type Events = any[]

/** A function waits for what must be before its turn. */
export type Plan = Record<string, readonly (ScriptedTurn | (() => Promise<ScriptedTurn>))[]>

/** Turns by the newest message of an agent that has one of these texts: the longest text counts. */
export function createPlanner() {
  const planner = { plan: {} as Plan, seen: [] as ScriptedQuestion[], script }
  function script(question: ScriptedQuestion): ScriptedTurn | Promise<ScriptedTurn> {
    planner.seen.push(question)
    const textOf = (message: unknown) => JSON.stringify((message as { content: unknown }).content)
    const keyOf = (text: string) =>
      Object.keys(planner.plan)
        .filter((each) => text.includes(each))
        .toSorted((a, b) => b.length - a.length)[0]
    const said = question.messages.findLast((each) => each.role === 'user' && keyOf(textOf(each)) !== undefined)
    const since = said ? question.messages.slice(question.messages.indexOf(said)) : []
    const step = since.filter(({ role }) => role === 'assistant').length
    const key = said && keyOf(textOf(said))
    const turn = planner.plan[key ?? '']?.[step] ?? { text: `nothing planned for ${key} at ${step}` }
    return typeof turn === 'function' ? turn() : turn
  }
  return planner
}

export const task = (prompt: string, more: object = {}) => ({
  name: 'Task',
  arguments: { description: prompt.slice(0, 20), prompt, subagent_type: 'worker', ...more },
})

const compare = (a: unknown, b: unknown) => (String(a) < String(b) ? -1 : 1)

/** Each call has one result, each subagent one end, and each run one `Result` of the main agent. */
export function expectWhole(events: Events): void {
  const idsOf = (type: string) => events.filter((event) => event.type === type).map((event) => event.tool_use_id)
  expect(idsOf('ToolResult').toSorted(compare)).toEqual(idsOf('ToolUse').toSorted(compare))
  const starts = events.filter(({ type }) => type === 'SubagentStart').map((event) => event.parent_tool_use_id)
  const ends = ofSubagents(events, 'Result').map((event) => event.parent_tool_use_id)
  expect(ends.toSorted(compare)).toEqual(starts.toSorted(compare))
  const runs = ofMain(events, 'Result').map((event) => event.run_id)
  expect(runs).toEqual([...new Set(runs)])
}

export const ofMain = (events: Events, type: string) =>
  events.filter((event) => event.type === type && !event.parent_tool_use_id)
export const ofSubagents = (events: Events, type: string) =>
  events.filter((event) => event.type === type && event.parent_tool_use_id)
