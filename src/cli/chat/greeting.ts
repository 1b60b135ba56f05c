/** The first lines of the chat (the version, the directory, and whether commands run in a sandbox), and the last one. */
import type { ChatOptions } from '../chat-seam.ts'
import { describeWeakMode } from '../conversation/refuse-resume.ts'
import type { ChatSession } from './chat-session.ts'
import { sandboxText } from './commands/facts.ts'
import { cleanText } from './state/clean-text.ts'
import type { Tone } from './state/chat-state.ts'

export function greet(session: ChatSession, { info, notices, server }: ChatOptions): void {
  const { workdir } = session.view
  const where = server === undefined ? workdir : `${workdir} on ${server}`
  session.say(`agent-server ${info.version} in ${where}. /help lists the commands.`)
  const isSaid = notices.some((notice) => /sandbox/i.test(notice))
  const tone = info.isolation === 'none' ? 'warning' : 'info'
  if (!isSaid) session.dispatch({ type: 'Notice', tone, text: `Sandbox: ${sandboxText(info.isolation)}.` })
  const weak = describeWeakMode(session.view.state.permission_mode)
  if (weak !== undefined) session.dispatch({ type: 'Notice', tone: 'warning', text: `Warning: ${weak}` })
  for (const text of notices) session.dispatch({ type: 'Notice', tone: toneOf(text), text })
}

/** A warning says so. */
const toneOf = (notice: string): Tone => (/^warning|without a sandbox/i.test(notice) ? 'warning' : 'info')

export function farewell(session: ChatSession, { server, command }: ChatOptions): string {
  const connectCommand = server === undefined ? command : `${command} connect ${server}`
  const { mode } = session.state
  // A mode that asks less is not inherited: without it, this line would be refused.
  const modeOption = describeWeakMode(mode) === undefined ? '' : ` --permission-mode ${mode}`
  return cleanText(`Continue this conversation:\n${connectCommand} --resume ${session.view.id}${modeOption}`)
}
