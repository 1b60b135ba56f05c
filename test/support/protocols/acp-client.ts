/** The Agent Client Protocol: one editor, with `agent-server acp --server`, that loads the session for each call. */
import type { PromptResponse } from '@agentclientprotocol/sdk'
import { once } from 'node:events'
import { expect } from 'vitest'
import { Editor } from '../../cli/acp/support/editor.ts'
import type { Addressed, ClientPlace, ProtocolClient, QuestionAnswer, Verdict } from './protocol-client.ts'

export class AcpClient implements ProtocolClient {
  readonly #editor: Editor
  readonly #home: string
  /** The prompts of the sessions that it has begun. */
  readonly #prompts = new Map<string, Promise<PromptResponse>>()
  readonly #verdicts = new Map<string, Verdict>()
  readonly #answers = new Map<string, QuestionAnswer>()
  /** Sessions whose question is shown. */
  readonly #questions = new Set<string>()

  private constructor(editor: Editor, home: string) {
    this.#editor = editor
    this.#home = home
    editor.onPermission = async ({ sessionId, toolCall, signal }) => {
      const verdict = this.#verdicts.get(sessionId)
      if (!verdict) await once(signal, 'abort')
      if (!verdict) return { outcome: { outcome: 'cancelled' } }
      expect(toolCall.title).toBe(verdict.command)
      const optionId = verdict.behavior === 'allow' ? 'allow_once' : 'reject_once'
      return { outcome: { outcome: 'selected', optionId } }
    }
    editor.onQuestion = async (asked) => {
      const sessionId = 'sessionId' in asked ? String(asked.sessionId) : ''
      this.#questions.add(sessionId)
      const answer = this.#answers.get(sessionId)
      return answer ? { action: 'accept', content: { question_0: answer.label } } : { action: 'cancel' }
    }
  }

  static async start({ url, key, home }: ClientPlace): Promise<AcpClient> {
    const env = { OPENHANDS_MASTER_KEY: key }
    const capabilities = { elicitation: { form: {} } }
    return new AcpClient(await Editor.start({ args: ['--server', url], env, cwd: home, capabilities }), home)
  }

  async begin(text: string): Promise<Addressed> {
    const { sessionId: id } = await this.#editor.agent.request('session/new', {
      cwd: this.#newDirectory,
      mcpServers: [],
    })
    const prompt = this.#editor.prompt(id, text)
    prompt.catch(() => {}) // it is awaited later
    this.#prompts.set(id, prompt)
    const isAsked = () => this.#questions.has(id) || this.#editor.permissions.some(({ sessionId }) => sessionId === id)
    await this.#editor.until('the agent waits', isAsked)
    return { id, thread: id }
  }

  async decide({ id }: Addressed, verdict: Verdict): Promise<void> {
    this.#verdicts.set(id, verdict)
    const before = await this.#load(id)
    await this.#editor.until('the answer', () => this.#said(id, before).endsWith(verdict.answer))
  }

  async answer({ id }: Addressed, answer: QuestionAnswer): Promise<void> {
    this.#answers.set(id, answer)
    const before = await this.#load(id)
    await this.#editor.until('the answer', () => this.#said(id, before).endsWith(answer.answer))
  }

  async continueWith({ id }: Addressed, text: string): Promise<string> {
    await this.#load(id)
    const before = this.#editor.of(id).length
    expect(await this.#editor.prompt(id, text)).toEqual({ stopReason: 'end_turn' })
    return this.#said(id, before)
  }

  /** The prompt of a session that another client has continued has ended, too. */
  async finalText({ id }: Addressed): Promise<string> {
    const prompt = this.#prompts.get(id)
    if (prompt) expect(await prompt).toEqual({ stopReason: 'end_turn' })
    return this.#said(id, await this.#load(id))
  }

  [Symbol.asyncDispose] = () => this.#editor[Symbol.asyncDispose]()

  get #newDirectory(): string {
    return `${this.#home}/${crypto.randomUUID()}`
  }

  /** Returns how many updates came before those of the replay. */
  async #load(id: string): Promise<number> {
    const before = this.#editor.of(id).length
    await this.#editor.load(id, this.#home)
    return before
  }

  /** What the agent has said since, after its last call and the last message of the user. */
  #said(id: string, from: number): string {
    const updates = this.#editor.of(id).slice(from)
    const start = updates.findLastIndex(({ sessionUpdate }) => OTHER.has(sessionUpdate)) + 1
    const texts = updates
      .slice(start)
      .map((update) =>
        update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? update.content.text : '',
      )
    return texts.join('')
  }
}

const OTHER: ReadonlySet<string> = new Set(['user_message_chunk', 'tool_call', 'tool_call_update'])
