/** What a client of the proxy asks for, in whichever protocol: the target, what is answered, and what is passed on first. */
import type { Host } from './host.ts'

/** Why a connection is not made. */
export type ProxyRefusal = 'denied' | 'unreachable'

export type Request = {
  readonly host: Host
  readonly port: number
  /** What the target is sent first, before the rest of what the client sends. */
  readonly head: Uint8Array
  /**
   * What of the client is passed on behind that: all; nothing, as the request is whole and another one could be for another
   * host; or all once the server has agreed to change the protocol, and nothing otherwise.
   */
  readonly more: 'all' | 'nothing' | 'if_upgraded'
  /** What the client is sent when the connection is there. */
  readonly accepted: Uint8Array
  /** What it is sent instead, with the reason in a sentence where the protocol has room for one. */
  readonly refused: (why: ProxyRefusal, sentence: string) => Uint8Array
}

/** The outcome of reading the first `used` bytes; undefined means that more have to come. */
export type Step =
  | { readonly kind: 'request'; readonly used: number; readonly request: Request }
  /** Send this, then read on. */
  | { readonly kind: 'reply'; readonly used: number; readonly bytes: Uint8Array }
  /** Send this, then end the connection. */
  | { readonly kind: 'fault'; readonly bytes: Uint8Array }
