/** The chat as a program in a terminal, for conversations of a stage. */
import { join } from 'node:path'
import type { Stage } from '../../../support/agent.ts'
import { bundledProgram } from '../../../support/bundled-program.ts'
import { KEY } from '../../../support/server.ts'
import { Terminal } from './terminal.ts'

const PROGRAM = await bundledProgram(join(import.meta.dirname, '../children/chat-program.ts'))

type Start = {
  readonly columns?: number
  readonly rows?: number
  readonly cwd?: string
  readonly env?: Record<string, string>
}

export function startChatOn(stage: Stage, id: string, { env = {}, ...size }: Start = {}): Terminal {
  const settings = { CHAT_URL: stage.server.url, CHAT_KEY: KEY, CHAT_ID: id, CHAT_MODEL: stage.model.baseUrl }
  return new Terminal([process.execPath, PROGRAM.path], { env: { ...PROGRAM.env, ...settings, ...env }, ...size })
}

/** With a new conversation. */
export async function openChatOn(
  stage: Stage,
  fields: Record<string, unknown> = {},
  more: Start = {},
): Promise<Terminal & { id: string }> {
  const id = await stage.create(fields)
  const terminal = startChatOn(stage, id, more)
  await terminal.shows('/help lists')
  return Object.assign(terminal, { id })
}
