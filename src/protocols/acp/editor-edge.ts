/** What a session needs of its client. Each version of the protocol has one: the only place where the two differ in words. */
import type { PermissionOption, SessionUpdate, ToolCallUpdate } from '@agentclientprotocol/sdk'
import type { Event } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import type { QuestionForm } from './question-form.ts'

export type EditorEdge = {
  /** Whether the editor shows forms. */
  readonly showsForms: boolean
  /** Shows what an event of the conversation changes. */
  readonly show: (event: Event | TransientEvent) => Promise<void>
  /** Sends updates, in the words of version 1. */
  readonly send: (updates: readonly SessionUpdate[]) => Promise<void>
  /** Shows the person a text in the session. */
  readonly tell: (text: string) => Promise<void>
  /** Returns the id of the chosen option; undefined if none was chosen. */
  readonly choose: (asked: AskedDecision, signal: AbortSignal) => Promise<string | undefined>
  /** Returns the content of the form; undefined if it was not accepted. */
  readonly fillIn: (asked: AskedForm, signal: AbortSignal) => Promise<object | undefined>
}

export type AskedDecision = {
  readonly toolCall: ToolCallUpdate & { readonly title: string }
  readonly options: PermissionOption[]
}

export type AskedForm = {
  readonly toolCallId: string | undefined
  readonly message: string
  readonly requestedSchema: QuestionForm
}

/** Options of a request that the server takes back. */
export const withdrawnBy = (cancellationSignal: AbortSignal) => ({ cancellationSignal, stopWaitingOnCancel: true })
