/** Executes the calls of the tools that this program has, and sends their results. */
import type { Status } from '../../contract/events/status.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import { z } from 'zod'
import { failedOutput, readOutput } from '../tools/tool-output.ts'
import type { ToolOutput } from '../tools/tool-output.ts'
import type { AnySdkTool } from '../tools/tool.ts'
import { repeatLost } from '../errors/repeat-lost.ts'
import type { Answerer, OpenedRequest, Work } from './request-responder.ts'
import type { ResponderDeps } from './responder.ts'
import { messageOf } from './responder.ts'
import { sendOrExplain } from '../errors/refused.ts'

export type ToolAnswererDeps = ResponderDeps & {
  readonly tools: readonly AnySdkTool[]
  /** See `ServerLink`. */
  readonly executing: Set<string>
}

type ToolOpened = Extract<OpenedRequest, { kind: 'client_tool' }>

export class ToolAnswerer implements Answerer {
  readonly #deps: ToolAnswererDeps
  readonly #tools: ReadonlyMap<string, AnySdkTool>
  /** Requests that wait for another program. */
  readonly #others = new Set<string>()

  constructor(deps: ToolAnswererDeps) {
    this.#deps = deps
    this.#tools = new Map(deps.tools.map((tool) => [tool.declaration.name, tool]))
  }

  workOn(event: OpenedRequest): Work[] {
    const tool = event.kind === 'client_tool' ? this.#tools.get(event.payload.name) : undefined
    if (event.kind === 'client_tool' && !tool) this.#others.add(event.request_id)
    const { executing } = this.#deps
    const key = `${event.conversation_id} ${event.request_id}`
    if (event.kind !== 'client_tool' || !tool || executing.has(key)) return []
    const [toolUseId = ''] = event.tool_use_ids
    executing.add(key)
    return [{ toolUseId, run: (signal) => this.#execute(tool, event, signal).finally(() => executing.delete(key)) }]
  }

  mayAnswer(status: Status): boolean {
    return status === 'waiting_for_client' && this.#others.size === 0
  }

  forget(requestId: string): void {
    this.#others.delete(requestId)
  }

  async #execute(tool: AnySdkTool, call: ToolOpened, signal: AbortSignal): Promise<void> {
    const { requests } = this.#deps.conversation
    const send = (output: ToolOutput) =>
      repeatLost(() => requests.answer(call.request_id, { kind: 'client_tool', ...output }, { signal }), signal)
    const output = await outputOf(tool, call, signal)
    await sendOrExplain(output, send, (reason) => failedOutput(`The result was refused: ${reason}`))
  }
}

/** Rejects only with the reason of the signal, also if the handler ignores that. */
async function outputOf(tool: AnySdkTool, call: ToolOpened, signal: AbortSignal): Promise<ToolOutput> {
  try {
    const [toolUseId = call.request_id] = call.tool_use_ids
    const context = { signal, sessionId: call.conversation_id, toolUseId }
    const working = async () => {
      // It is not the schema's method, which schemas of zod/mini do not have.
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
