/** The agent of one connection, in the version of the protocol that its client asks for. */
import type { Stream } from '@agentclientprotocol/sdk'
import { agentProtocolRouter } from '@agentclientprotocol/sdk/experimental/v2'
import { EditorAgent } from './agent-v1.ts'
import type { EditorAgentOptions } from './editor-agent-options.ts'
import { EditorAgentV2 } from './agent-v2.ts'

export type EditorConnection = {
  /** Resolves when nothing more is read, and all sessions are closed. */
  readonly closed: Promise<void>
  /** Stops reading. The agents work on. */
  readonly close: () => void
}

export function connectEditor(stream: Stream, options: EditorAgentOptions): EditorConnection {
  const [first, second] = [new EditorAgent(options), new EditorAgentV2(options)]
  const { promise: untilStopped, resolve: stop } = Promise.withResolvers<void>()
  let closeConnection = () => {}
  const keep = (connection: { readonly close: () => void }) => {
    closeConnection = () => connection.close()
  }
  const v1 = first.app().onConnect((connection) => keep(connection))
  const v2 = second.app().onConnect((connection) => keep(connection))
  const { closed } = agentProtocolRouter().withV1(v1).withV2(v2).connect(stream)
  return {
    closed: Promise.race([closed, untilStopped]).finally(() => {
      first.close()
      second.close()
    }),
    close() {
      closeConnection()
      stop()
    },
  }
}
