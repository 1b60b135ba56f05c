/** The five tools with which another agent uses agents of this server. Rights are those of the key. */
import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import { Hash } from '../../contract/values/permission.ts'
import { VERSION } from '../../wiring/version.ts'
import type { ProtocolHost } from '../protocol/protocol-host.ts'
import type { ReportCaller } from './agent-report.ts'
import { AgentReport, reportOf } from './agent-report.ts'

type Options = {
  readonly openHost: () => Promise<ProtocolHost>
  /** The directory of new agents; undefined: the server makes a directory. */
  readonly directory: string | undefined
}

/** Clients wait for a minute. */
const MAX_WAIT_S = 45
const DEFAULT_WAIT_S = 30

const Wait = z
  .number()
  .min(0)
  .max(MAX_WAIT_S)
  .default(DEFAULT_WAIT_S)
  .describe('Seconds to wait for the end. After that the status is `running`: call `get_agent` again.')
const Prompt = z.string().regex(/\S/, 'must not be blank').describe('What the agent is to do.')
const Id = z.uuid().describe('`conversation_id` of an earlier result.')

const OUTPUT = { outputSchema: AgentReport }

export function agentTools({ openHost, directory }: Options): McpServer {
  const server = new McpServer({ name: 'agent-server', version: VERSION }, { instructions: INSTRUCTIONS })
  const conversationOf = async (id: string): Promise<ConversationHandle> => (await openHost()).client.conversation(id)

  server.registerTool(
    'start_agent',
    {
      description:
        'Starts an agent on a task, in a new conversation, and returns its answer, or its status after a wait.',
      inputSchema: z.object({
        prompt: Prompt,
        workdir: z.string().min(1).optional().describe('The absolute path of the directory in which it works.'),
        wait_seconds: Wait,
      }),
      ...OUTPUT,
      annotations: { destructiveHint: true, openWorldHint: true },
    },
    async ({ prompt, workdir, wait_seconds }, { mcpReq }) => {
      const host = await openHost()
      const { id } = await host.create(workdir ?? directory, undefined)
      const conversation = host.client.conversation(id)
      await conversation.send(prompt)
      return await reportOf(conversation, wait_seconds, callerOf(mcpReq))
    },
  )
  server.registerTool(
    'continue_agent',
    {
      description:
        'Sends a message to an agent, also while it works, and returns its answer, or its status after a wait.',
      inputSchema: z.object({ conversation_id: Id, prompt: Prompt, wait_seconds: Wait }),
      ...OUTPUT,
      annotations: { destructiveHint: true, openWorldHint: true },
    },
    async ({ conversation_id, prompt, wait_seconds }, { mcpReq }) => {
      const conversation = await conversationOf(conversation_id)
      await conversation.send(prompt)
      return await reportOf(conversation, wait_seconds, callerOf(mcpReq))
    },
  )
  server.registerTool(
    'get_agent',
    {
      description: 'Waits for an agent that works, and returns its answer, its status and what it waits for.',
      inputSchema: z.object({ conversation_id: Id, wait_seconds: Wait }),
      ...OUTPUT,
      annotations: { readOnlyHint: true },
    },
    async ({ conversation_id, wait_seconds }, { mcpReq }) =>
      await reportOf(await conversationOf(conversation_id), wait_seconds, callerOf(mcpReq)),
  )
  addControls(server, conversationOf)
  return server
}

function addControls(server: McpServer, conversationOf: (id: string) => Promise<ConversationHandle>): void {
  server.registerTool(
    'decide',
    {
      description: 'Allows or denies one call that an agent waits for, after a person has seen all of its input.',
      inputSchema: z.object({
        conversation_id: Id,
        request_id: z.uuid(),
        tool_use_id: z.string().min(1),
        input_hash: Hash,
        behavior: z.enum(['allow', 'deny']),
        message: z.string().max(10_000).optional().describe('Why it is denied, for the agent.'),
        wait_seconds: Wait,
      }),
      ...OUTPUT,
      annotations: { destructiveHint: true, openWorldHint: true },
    },
    async ({ conversation_id, request_id, wait_seconds, message, ...call }, { mcpReq }) => {
      const conversation = await conversationOf(conversation_id)
      const decision = { ...call, ...(call.behavior === 'deny' && message !== undefined && { message }) }
      await conversation.requests.answer(request_id, { kind: 'permission', decisions: [decision] })
      return await reportOf(conversation, wait_seconds, callerOf(mcpReq))
    },
  )
  server.registerTool(
    'stop_agent',
    {
      description: 'Interrupts an agent. `continue_agent` continues it.',
      inputSchema: z.object({ conversation_id: Id }),
      ...OUTPUT,
      annotations: { idempotentHint: true },
    },
    async ({ conversation_id }, { mcpReq }) => {
      const conversation = await conversationOf(conversation_id)
      await conversation.pause({ interrupt: true })
      return await reportOf(conversation, 0, callerOf(mcpReq))
    },
  )
}

const INSTRUCTIONS =
  'start_agent delegates a task to an agent that has a directory and tools. If a result has `pending`, the agent waits: show the call to a person, and answer with decide. If it has `waiting`, tell a person what waits. If the status is running, call get_agent.'

type McpRequest = {
  readonly signal: AbortSignal
  readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined
  readonly notify: (notification: {
    method: 'notifications/progress'
    params: { progressToken: string | number; progress: number; message: string }
  }) => Promise<void>
}

function callerOf({ signal, _meta, notify }: McpRequest): ReportCaller {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return { signal }
  const report = async (progress: number, message: string) =>
    await notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
  return { signal, report }
}
