/** The chunks of the UI message stream, version 1, that this server sends. Clients validate them strictly. */
import type { RequestKind } from '../../contract/requests/request-kinds.ts'

export type UiTextKind = 'reasoning' | 'text'

export type UiFilePart = { readonly type: 'file'; readonly mediaType: string; readonly url: string }
export type UiInputPart = { readonly type: 'text'; readonly text: string } | UiFilePart

/** A question, or a request that only another client of the server can answer. */
export type UiRequestData = {
  readonly request_id: string
  readonly kind: RequestKind
  readonly payload: unknown
  readonly status: 'open' | 'answered' | 'closed'
  readonly answer?: unknown
}

type OfCall = { readonly toolCallId: string }
/** Calls of the tools of the server. */
type ByServer = { readonly providerExecuted?: true; readonly dynamic?: true }

export type UiChunk =
  | { readonly type: 'start'; readonly messageId: string; readonly messageMetadata: object }
  | { readonly type: 'start-step' | 'finish-step' | 'reset-step' }
  | { readonly type: `${UiTextKind}-start` | `${UiTextKind}-end`; readonly id: string }
  | { readonly type: `${UiTextKind}-delta`; readonly id: string; readonly delta: string }
  | (OfCall & ByServer & { readonly type: 'tool-input-available'; readonly toolName: string; readonly input: unknown })
  | (OfCall & { readonly type: 'tool-approval-request'; readonly approvalId: string; readonly reason: string })
  | {
      readonly type: 'tool-approval-response'
      readonly approvalId: string
      readonly approved: boolean
      readonly reason?: string
    }
  | (OfCall & ByServer & { readonly type: 'tool-output-available'; readonly output: unknown })
  | (OfCall & ByServer & { readonly type: 'tool-output-error'; readonly errorText: string })
  | (OfCall & { readonly type: 'tool-output-denied' })
  | { readonly type: 'data-request'; readonly id: string; readonly data: UiRequestData }
  | { readonly type: 'data-diff'; readonly id: string; readonly data: unknown }
  | { readonly type: 'steering-message'; readonly id: string; readonly parts: readonly UiInputPart[] }
  | { readonly type: 'message-metadata'; readonly messageMetadata: object }
  | { readonly type: 'abort'; readonly reason: string }
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'finish'; readonly finishReason: UiFinishReason; readonly messageMetadata?: object }

export type UiFinishReason = 'content-filter' | 'interrupted' | 'length' | 'other' | 'stop' | 'tool-calls'
