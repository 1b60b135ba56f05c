/** The two lines around the prompt: what the agent does now, and the facts of the conversation. */
import type { ChatState } from '../state/chat-state.ts'
import { isBusy } from '../state/chat-state.ts'
import { cleanLine } from '../state/clean-text.ts'
import { tokensIn } from '../../../contract/values/message.ts'
import { oneLine } from './lines.ts'
import type { Theme } from './theme.ts'

const FRAMES = ['|', '/', '-', '\\']
const FRAME_MS = 250

/** Empty while nothing runs. */
export function activityLine(
  state: ChatState,
  { width, theme, now }: { width: number; theme: Theme; now: number },
): string {
  if (!isBusy(state) || state.status !== 'running') return ''
  const frame = FRAMES[Math.floor(now / FRAME_MS) % FRAMES.length] ?? ''
  const word = state.isQueued ? 'Waiting for a free slot' : (state.activity ?? 'Working')
  const seconds = state.runningSince === undefined ? '' : ` ${durationOf(now - state.runningSince)}`
  return oneLine(`${theme.cyan(frame)} ${word}${seconds} ${theme.dim('(Esc interrupts; a message steers)')}`, width)
}

export type Facts = {
  readonly isSandboxed: boolean
  readonly server: string | undefined
  /** The branch of git; undefined outside a repository, and on another machine. */
  readonly branch?: string | undefined
  /** Tokens that the model can read at once, if that is known. */
  readonly contextWindow?: number | undefined
}

export function statusLine(
  state: ChatState,
  { isSandboxed, server, branch, contextWindow }: Facts,
  { width, theme, now }: { width: number; theme: Theme; now: number },
): string {
  const tokens = tokensIn(state.usage)
  const ms = state.runningSince === undefined ? state.lastRunMs : now - state.runningSince
  const parts = [
    cleanLine(state.model),
    branch === undefined ? undefined : cleanLine(branch),
    `${countOf(tokens)} tokens`,
    contextText(state, contextWindow),
    state.costUsd === undefined ? undefined : costOf(state.costUsd),
    ms === undefined ? undefined : durationOf(ms),
    state.mode === 'default' ? undefined : `mode ${state.mode}`,
    isSandboxed ? undefined : 'no sandbox',
    state.isConnected ? server : 'not connected',
  ]
  return theme.dim(oneLine(parts.filter((part) => part !== undefined && part !== '').join(' · '), width))
}

function contextText({ contextTokens }: ChatState, window: number | undefined): string | undefined {
  if (contextTokens === undefined || window === undefined) return undefined
  return `context ${Math.min(100, Math.round((contextTokens / window) * 100))}%`
}

function durationOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m ${seconds % 60}s`
}

export function countOf(tokens: number): string {
  if (tokens < 1000) return String(tokens)
  return tokens < 1_000_000 ? `${(tokens / 1000).toFixed(1)}k` : `${(tokens / 1_000_000).toFixed(1)}M`
}

export const costOf = (usd: number): string => `$${usd.toFixed(usd < 1 ? 4 : 2)}`
