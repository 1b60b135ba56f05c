/** What a tool under test is called with. */
import { randomUUID } from 'node:crypto'
import type { ToolContext } from '../../src/tools/tool.ts'

export function contextIn(workdir: string, more: Partial<ToolContext> = {}): ToolContext {
  return {
    conversationId: randomUUID(),
    toolUseId: randomUUID(),
    workdir,
    signal: new AbortController().signal,
    openRequest: async () => undefined,
    onOutput: () => {},
    ...more,
  }
}
