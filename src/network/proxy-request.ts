/** A request of a proxy client, in any protocol: the target, the replies, and the bytes to forward first. */
import type { Host } from './host.ts'

/** Why a connection is not made. */
export type ProxyRefusal = 'denied' | 'unreachable'

export type Request = {
  readonly host: Host
  readonly port: number
  /** Sent to the target first, before the client's remaining bytes. */
  readonly head: Uint8Array
  /**
   * Says which bytes of the client follow: all; none, because the request is complete and another one could be for
   * another host; or all after the server has agreed to change the protocol, and none otherwise.
   */
  readonly more: 'all' | 'nothing' | 'if_upgraded'
  /** Sent to the client when the connection is established. */
  readonly accepted: Uint8Array
  /** Sent to the client if it is refused, with the reason in a sentence if the protocol has room for it. */
  readonly refused: (why: ProxyRefusal, sentence: string) => Uint8Array
}

/** The outcome of reading the first `used` bytes; undefined means that more are needed. */
export type Step =
  | { readonly kind: 'request'; readonly used: number; readonly request: Request }
  /** Send this, then continue reading. */
  | { readonly kind: 'reply'; readonly used: number; readonly bytes: Uint8Array }
  /** Send this, then end the connection. */
  | { readonly kind: 'fault'; readonly bytes: Uint8Array }
