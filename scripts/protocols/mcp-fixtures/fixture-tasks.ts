/** Tools that are tasks for clients that poll them. Here the tasks are in memory: those of agents are in their logs. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server'
import { acceptedContent, inputRequired } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { DeclaringRequest, McpTask, McpTasks } from '../../../src/protocols/mcp/task-extension.ts'
import { pollsTasks, taskResult, unknownTask } from '../../../src/protocols/mcp/task-extension.ts'
import { text } from './tools.ts'

type Run = (signal: AbortSignal) => Promise<CallToolResult>
type KeptTask = { task: McpTask; readonly ending: AbortController }

const INTERNAL_ERROR = -32_603
const LONG_MS = 3_600_000
const Confirmed = z.object({ confirm: z.boolean() })
const Named = z.object({ name: z.string() })
const elicit = (message: string, requestedSchema: z.ZodObject) => inputRequired.elicit({ message, requestedSchema })

export class FixtureTasks implements McpTasks {
  readonly #kept = new Map<string, KeptTask>()

  get = async (taskId: string): Promise<McpTask> => this.#find(taskId).task

  cancel = async (taskId: string): Promise<void> => {
    const kept = this.#find(taskId)
    kept.ending.abort()
    if (isOpen(kept.task)) kept.task = { ...headOf(kept.task), status: 'cancelled' }
  }

  update = async (taskId: string, responses: Readonly<Record<string, unknown>>): Promise<void> => {
    const kept = this.#find(taskId)
    if (kept.task.status !== 'input_required') return
    const { inputRequests } = kept.task
    const left = Object.fromEntries(Object.entries(inputRequests).filter(([key]) => !(key in responses)))
    kept.task =
      Object.keys(left).length > 0
        ? { ...headOf(kept.task), status: 'input_required', inputRequests: left }
        : { ...headOf(kept.task), status: 'completed', result: text(JSON.stringify(responses)) }
  }

  addTools(server: McpServer): void {
    server.registerTool(
      'greet',
      { description: 'Greets.', inputSchema: z.object({ name: z.string() }) },
      async ({ name }) => text(`Hello, ${name}!`),
    )
    server.registerTool(
      'slow_compute',
      { description: 'Takes its time.', inputSchema: z.object({ seconds: z.number(), label: z.string().optional() }) },
      async ({ seconds }, { mcpReq }) =>
        await this.#begin(mcpReq, async (signal) => {
          await sleep(seconds * 1000, undefined, { signal })
          return text('computed')
        }),
    )
    const fails: Run = async () => ({ ...text('It fails.'), isError: true })
    const breaks: Run = async () => {
      throw new Error('It breaks.')
    }
    for (const [name, run] of Object.entries({ failing_job: fails, protocol_error_job: breaks }))
      server.registerTool(
        name,
        { description: name, inputSchema: z.object({}) },
        async (_, { mcpReq }) => await this.#begin(mcpReq, run),
      )
    this.#addAskingTools(server)
  }

  #addAskingTools(server: McpServer): void {
    server.registerTool(
      'confirm_delete',
      { description: 'Asks once.', inputSchema: z.object({ filename: z.string().optional() }) },
      async () => this.#ask({ confirm: elicit('Delete it?', Confirmed) }),
    )
    server.registerTool('multi_input', { description: 'Asks twice.', inputSchema: z.object({}) }, async () =>
      this.#ask({ one: elicit('Who?', Named), two: elicit('Delete it?', Confirmed) }),
    )
    server.registerTool(
      'test_tool_with_task',
      { description: 'Asks before its task.', inputSchema: z.object({}) },
      async (_, { mcpReq }) => {
        const user = acceptedContent(mcpReq.inputResponses, 'user_name', Named)
        return user
          ? await this.#begin(mcpReq, async () => text(`Hello, ${user.name}!`))
          : inputRequired({ inputRequests: { user_name: elicit('Who?', Named) } })
      },
    )
  }

  async #begin(request: DeclaringRequest, run: Run) {
    const ending = new AbortController()
    if (!pollsTasks(request)) return await run(ending.signal)
    const task = this.#keep(ending)
    const end = (last: McpTask) => {
      const kept = this.#find(task.taskId)
      if (isOpen(kept.task)) kept.task = last
    }
    void run(ending.signal).then(
      (result) => end({ ...headOf(task), status: 'completed', result }),
      (error: Error) =>
        end({ ...headOf(task), status: 'failed', error: { code: INTERNAL_ERROR, message: error.message } }),
    )
    return taskResult(text('It works.'), task)
  }

  #ask(inputRequests: Readonly<Record<string, object>>) {
    const task = this.#keep(new AbortController())
    this.#find(task.taskId).task = { ...headOf(task), status: 'input_required', inputRequests }
    return taskResult(text('It asks.'), task)
  }

  #keep(ending: AbortController) {
    const at = new Date().toISOString()
    const head = { taskId: crypto.randomUUID(), createdAt: at, lastUpdatedAt: at, ttlMs: LONG_MS, pollIntervalMs: 100 }
    const task = { ...head, status: 'working' as const }
    this.#kept.set(task.taskId, { task, ending })
    return task
  }

  #find(taskId: string): KeptTask {
    const kept = this.#kept.get(taskId)
    if (!kept) throw unknownTask()
    return kept
  }
}

const isOpen = ({ status }: McpTask): boolean => status === 'working' || status === 'input_required'

const headOf = ({ taskId, createdAt, ttlMs, pollIntervalMs }: McpTask) => ({
  taskId,
  createdAt,
  lastUpdatedAt: new Date().toISOString(),
  ttlMs,
  pollIntervalMs,
})
