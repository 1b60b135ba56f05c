/** A request to one client, or its end, as its streams send it. Never stored. */
import type { HookFrame } from '../contract/hooks/client-hooks.ts'

export type RequestRecord = {
  /** Always undefined, which distinguishes it from a stored event. */
  readonly seq: undefined
  readonly type: HookFrame['type']
  readonly event: HookFrame
  readonly json: string
}

export const requestRecord = (event: HookFrame): RequestRecord => ({
  seq: undefined,
  type: event.type,
  event,
  json: JSON.stringify(event),
})
