/**
 * The `TaskTracker` tool: the agent's own task list. It is stored only in the log: the last result contains the list.
 */
import { z } from 'zod'
import type { Tool } from './tool.ts'
import type { ToolOutcome } from '../state/tool-call.ts'
import { failure } from '../state/tool-call.ts'

/** Enough for any useful plan; the list is part of the conversation's state. */
const MAX_TASKS = 100
const MAX_TITLE_CHARS = 500
const MAX_NOTES_CHARS = 2000

const Task = z.object({
  title: z.string().min(1).max(MAX_TITLE_CHARS).describe('What is to be done, briefly.'),
  notes: z.string().max(MAX_NOTES_CHARS).optional().describe('Details, where the title does not say enough.'),
  status: z.enum(['todo', 'in_progress', 'done']).default('todo'),
})
type Task = z.infer<typeof Task>

const TaskTrackerInput = z.object({
  command: z.enum(['view', 'plan']).describe('`plan` replaces the list; `view` shows it.'),
  task_list: z
    .array(Task)
    .max(MAX_TASKS)
    .optional()
    .describe('Required for `plan`: the whole list, in order, including finished tasks.'),
})
type TaskTrackerInput = z.infer<typeof TaskTrackerInput>

const TaskList = z.object({ task_list: z.array(Task) })
type TaskList = z.infer<typeof TaskList>

const DESCRIPTION = `Keeps the list of tasks of this conversation, for you and for the user who follows it.

- \`plan\` replaces the whole list by \`task_list\`; \`view\` shows it.
- Use it for work of several steps: write the list before you begin, have one task \`in_progress\` at a time, and mark each \`done\` as soon as it is. Not for what takes one or two steps.
- A task is \`done\` when it works, not when it was tried. Add what turns up, and drop what is no longer needed.`

/** `lastOutput` returns the output of this tool's last successful call, undefined if there was none. */
export function createTaskTracker(lastOutput: () => unknown): Tool<TaskTrackerInput> {
  return {
    name: 'TaskTracker',
    description: DESCRIPTION,
    input: TaskTrackerInput,
    output: TaskList,
    harmless: true,
    run: async ({ command, task_list }) => (command === 'view' ? { output: lastList(lastOutput) } : plan(task_list)),
    render: (output) => renderList(TaskList.parse(output)),
  }
}

function plan(task_list: readonly Task[] | undefined): ToolOutcome {
  if (task_list) return { output: { task_list } }
  return failure('invalid_input', 'Parameter `task_list` is required for command: plan.')
}

/** A list that another version of the tool wrote, and this one cannot read, counts as empty. */
function lastList(lastOutput: () => unknown): TaskList {
  const parseResult = TaskList.safeParse(lastOutput())
  return parseResult.success ? parseResult.data : { task_list: [] }
}

const MARKS = { todo: '[ ]', in_progress: '[>]', done: '[x]' } as const

function renderList({ task_list }: TaskList): string {
  if (!task_list.length) return 'The task list is empty.'
  const doneCount = task_list.filter((task) => task.status === 'done').length
  const lines = task_list.map(
    ({ title, notes, status }, at) =>
      `${at + 1}. ${MARKS[status]} ${title}${notes ? `\n   ${notes.replaceAll('\n', '\n   ')}` : ''}`,
  )
  return [`Task list (${doneCount} of ${task_list.length} done):`, ...lines].join('\n')
}
