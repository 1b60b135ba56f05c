/** The task list of the agent as the plan that editors show. */
import type { PlanEntry, SessionUpdate } from '@agentclientprotocol/sdk'
import { z } from 'zod'

const TaskList = z.object({
  task_list: z.array(z.object({ title: z.string(), status: z.enum(['todo', 'in_progress', 'done']).catch('todo') })),
})

const STATUSES = { todo: 'pending', in_progress: 'in_progress', done: 'completed' } as const

/** `output`: that of the tool `TaskTracker`. */
export function planOf(output: unknown): SessionUpdate[] {
  const { success, data } = TaskList.safeParse(output)
  if (!success) return []
  const entries = data.task_list.map(({ title, status }): PlanEntry => ({
    content: title,
    status: STATUSES[status],
    priority: 'medium',
  }))
  return [{ sessionUpdate: 'plan', entries }]
}
