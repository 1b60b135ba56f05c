/** Executes the calls of the tools that this program has, and sends their results. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import { z } from 'zod'
import { failedOutput, readOutput } from '../tools/tool-output.ts'
import type { ToolOutput } from '../tools/tool-output.ts'
import type { AnySdkTool } from '../tools/tool.ts'
import { repeatLost } from '../repeat-lost.ts'
import type { Responder, ResponderDeps } from './responder.ts'
import { messageOf, OpenWork } from './responder.ts'

export type ToolResponderDeps = ResponderDeps & {
  readonly tools: readonly AnySdkTool[]
  /** See `ServerLink`. */
  readonly executing: Set<string>
}

type ToolOpened = Extract<EventOf<'RequestOpened'>, { kind: 'client_tool' }>

export class ToolResponder implements Responder {
  readonly #deps: ToolResponderDeps
  readonly #tools: ReadonlyMap<string, AnySdkTool>
  readonly #work: OpenWork

  constructor(deps: ToolResponderDeps) {
    this.#deps = deps
    this.#tools = new Map(deps.tools.map((tool) => [tool.declaration.name, tool]))
    this.#work = new OpenWork(deps.fail)
  }

  take(event: Event): void {
    if (event.type === 'ToolResult') return this.#work.end(event.tool_use_id)
    if (event.type !== 'RequestOpened' || event.kind !== 'client_tool') return
    const tool = this.#tools.get(event.payload.name)
    const [toolUseId = event.request_id] = event.tool_use_ids
    const key = `${event.conversation_id} ${event.request_id}`
    const { executing } = this.#deps
    if (!tool || executing.has(key)) return
    executing.add(key)
    this.#work.start(toolUseId, (signal) => this.#execute(tool, event, signal).finally(() => executing.delete(key)))
  }

  mayAnswer(): boolean {
    return false
  }

  close(): void {
    this.#work.endAll()
  }

  async #execute(tool: AnySdkTool, call: ToolOpened, signal: AbortSignal): Promise<void> {
    const { requests } = this.#deps.conversation
    const send = (output: ToolOutput) =>
      repeatLost(() => requests.answer(call.request_id, { kind: 'client_tool', ...output }, { signal }), signal)
    const output = await outputOf(tool, call, signal)
    try {
      await send(output)
    } catch (error) {
      if (!(error instanceof AgentServerError) || !isRefused(error)) throw error
      await send(failedOutput(`The result was refused: ${error.message}`))
    }
  }
}

/** The server accepts such a result of nobody; the call still waits. */
const isRefused = ({ status }: AgentServerError) => status === 400 || status === 413 || status === 422

/** Rejects only with the reason of the signal, also if the handler ignores that. */
async function outputOf(tool: AnySdkTool, call: ToolOpened, signal: AbortSignal): Promise<ToolOutput> {
  try {
    const [toolUseId = call.request_id] = call.tool_use_ids
    const context = { signal, sessionId: call.conversation_id, toolUseId }
    const working = async () => {
      // Not its method, which schemas of zod/mini do not have.
      const input = await z.safeParseAsync(tool.schema, call.payload.input)
      if (!input.success) return failedOutput(`The input is not valid. ${z.prettifyError(input.error)}`)
      return readOutput(await tool.handler(input.data, context))
    }
    return await orAborted(working(), signal)
  } catch (error) {
    signal.throwIfAborted()
    return failedOutput(messageOf(error))
  }
}
