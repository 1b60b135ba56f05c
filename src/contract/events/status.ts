/** The enumerations of events: the status of a conversation, why a run ended, and what failed. */
import { z } from 'zod'

export const Status = z
  .enum([
    'idle',
    'running',
    'waiting_for_confirmation',
    'waiting_for_input',
    'waiting_for_client',
    'paused',
    'finished',
    'error',
    'cancelled',
  ])
  .meta({ id: 'Status' })
export type Status = z.infer<typeof Status>

export const ErrorType = z
  .enum([
    'auth',
    'quota',
    'rate_limit',
    'context_window',
    'content_filter',
    'config',
    'network',
    'tool',
    'internal',
    'workdir_missing',
  ])
  .meta({ id: 'ErrorType' })
export type ErrorType = z.infer<typeof ErrorType>

/** Why a run ended. `completed` is a text-only answer, `finished` the Finish tool; `superseded` by a message; `budget_limit` and `token_limit`: the run reached `max_budget_usd` or `max_tokens_per_run`; `stuck`: the agent repeated itself; `content_filter`: the provider's filter ended the answer; `hook`: a hook answered `continue: false`; `owner_lost`: the instance that had the conversation has died, and another one has taken it over. */
export const StopReason = z
  .enum([
    'completed',
    'finished',
    'paused',
    'max_steps',
    'iteration_limit',
    'time_limit',
    'budget_limit',
    'token_limit',
    'stuck',
    'content_filter',
    'hook',
    'error',
    'server_restart',
    'owner_lost',
    'rejected',
    'superseded',
    'cancelled',
  ])
  .meta({ id: 'StopReason' })
export type StopReason = z.infer<typeof StopReason>

/** Why a tool call has no ordinary result. */
export const ToolErrorType = z
  .enum(['invalid_input', 'unknown_tool', 'failed', 'timeout', 'interrupted', 'resource_limit', 'rejected', 'denied'])
  .meta({ id: 'ToolErrorType' })
export type ToolErrorType = z.infer<typeof ToolErrorType>

/** Reasons of a `StatusUpdate` with the status `running`: the run waits until fewer others work; it works now. */
export const QUEUED = 'queued'
export const DEQUEUED = 'dequeued'
