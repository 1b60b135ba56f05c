/** Version 2 of the Agent Client Protocol, over a WebSocket: an editor that resumes its session when it comes back. */
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { EditorV2, isState } from '../../cli/acp/support/editor-v2.ts'
import { shownInV2 } from '../../cli/acp/support/shown-v2.ts'
import type { ProtocolClient } from '../protocol-clients.ts'
import type { TestServer } from '../server.ts'
import { KEY } from '../server.ts'

export class AcpCutClient implements ProtocolClient {
  readonly #url: string
  readonly #cwd: string
  #session = ''
  #editor: EditorV2 | undefined
  /** The connections that have ended. */
  readonly #lost = new WeakSet<EditorV2>()
  #sent = { text: '', count: 0 }

  constructor({ url, home }: TestServer, id: string) {
    this.#url = url
    this.#cwd = join(home, id)
  }

  async say(text: string, onEvent: () => void = () => {}): Promise<void> {
    this.#sent = { text, count: this.#sent.count + 1 }
    const editor = (this.#editor ??= await this.#connect())
    await this.#untilLost(editor, async () => {
      this.#session ||= await editor.begin(this.#cwd)
      editor.onUpdate = onEvent
      await this.#send(editor)
    })
  }

  leave(): void {
    void this.#editor?.kill()
  }

  async comeBack(): Promise<void> {
    await this.#editor?.kill()
    const editor = await this.#connect()
    this.#editor = editor
    await this.#untilLost(editor, async () => {
      this.#session ||= await editor.begin(this.#cwd)
      await editor.resume(this.#session, this.#cwd, { type: 'start' })
      const isSent = this.shown().filter(({ kind }) => kind === 'user').length === this.#sent.count
      await (isSent ? this.#untilIdle(editor, 0) : this.#send(editor))
    })
  }

  async stop(): Promise<void> {
    await this.#editor?.agent.notify('session/cancel', { sessionId: this.#session })
  }

  shown() {
    return shownIn(this.#editor, this.#session)
  }

  async stored() {
    await using other = await this.#connect()
    await other.resume(this.#session, this.#cwd, { type: 'start' })
    return shownIn(other, this.#session)
  }

  answer(): string {
    const shown = this.shown()
    const own = shown.slice(shown.findLastIndex(({ kind }) => kind === 'user') + 1)
    return own.flatMap(({ kind, text }) => (kind === 'message' && text ? [text] : [])).join('|')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#editor?.kill()
  }

  async #connect(): Promise<EditorV2> {
    const headers = { authorization: `Bearer ${KEY}` }
    const url = `${this.#url.replace('http', 'ws')}/acp?profile=coder`
    const editor = await EditorV2.over(createWebSocketStream(url, { headers, WebSocket }))
    void editor.closed.then(() => this.#lost.add(editor))
    return editor
  }

  async #send(editor: EditorV2): Promise<void> {
    const before = editor.of(this.#session).length
    await editor.send(this.#session, this.#sent.text)
    await this.#untilIdle(editor, before)
  }

  async #untilIdle(editor: EditorV2, since: number): Promise<void> {
    const states = () => editor.of(this.#session).slice(since).filter(isState)
    await editor.until('the end of the work', () => this.#lost.has(editor) || states().at(-1)?.state === 'idle')
  }

  /** An error counts only while there is a connection. */
  async #untilLost(editor: EditorV2, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      if (!this.#lost.has(editor)) throw error
    })
  }
}

/** A call that a stop has ended before it was complete is shown live only. */
const shownIn = (editor: EditorV2 | undefined, session: string) =>
  shownInV2(editor?.of(session) ?? []).filter(
    ({ kind, status, rawInput }) => kind !== 'thought' && !(status === 'cancelled' && rawInput === undefined),
  )
