/** A request to one client, or its end, as its streams send it. Never stored. */
import type { HookFrame } from '../contract/hooks/client-hooks.ts'

export type RequestRecord = {
  /** The value is always undefined, which distinguishes it from a stored event. */
  readonly seq: undefined
  readonly type: HookFrame['type']
  readonly event: HookFrame
  readonly json: string
}

/** The requests to one client. */
export type RequestSource = {
  /** Those that wait. */
  readonly due: () => readonly RequestRecord[]
  /** Calls `add` for each later record. Returns a function that ends it. */
  readonly subscribe: (add: (record: RequestRecord) => void) => () => void
}

export const requestRecord = (event: HookFrame): RequestRecord => ({
  seq: undefined,
  type: event.type,
  event,
  json: JSON.stringify(event),
})
