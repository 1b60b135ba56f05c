/** AG-UI, by its own client. Each call is a page that gets the messages of the thread. */
import type { Interrupt } from '@ag-ui/client'
import { expect } from 'vitest'
import { Page } from '../ag-ui-page.ts'
import type { Addressed, ClientPlace, ProtocolClient, QuestionAnswer, Verdict } from './protocol-client.ts'

export class AgUiClient implements ProtocolClient {
  readonly #place: ClientPlace

  constructor(place: ClientPlace) {
    this.#place = place
  }

  async begin(text: string): Promise<Addressed> {
    const thread = crypto.randomUUID()
    await this.#page(thread).say(text)
    const { url, key } = this.#place
    // The same external id is the same conversation.
    const reply = await fetch(`${url}/conversations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ external_id: thread, profile: 'default' }),
    })
    const { id } = JSON.parse(await reply.text())
    return { id, thread }
  }

  async decide(conversation: Addressed, { command, behavior, reason, answer }: Verdict): Promise<void> {
    const { page, interrupt } = await this.#open(conversation)
    expect(interrupt.message).toContain(command)
    const approved = behavior === 'allow'
    const payload = { approved, ...(!approved && { message: reason }) }
    await page.run({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] })
    expect(page.text.at(-1)).toBe(`assistant: ${answer}`)
  }

  async answer(conversation: Addressed, { label, answer }: QuestionAnswer): Promise<void> {
    const { page, interrupt } = await this.#open(conversation)
    expect(interrupt.message).toContain(label)
    const payload = { answers: { 0: label } }
    await page.run({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] })
    expect(page.text.at(-1)).toBe(`assistant: ${answer}`)
  }

  async continueWith({ thread }: Addressed, text: string): Promise<string> {
    const page = this.#page(thread)
    await page.run()
    await page.say(text)
    return lastTextIn(page)
  }

  async finalText({ thread }: Addressed): Promise<string> {
    const page = this.#page(thread)
    await page.run()
    return lastTextIn(page)
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #page(thread: string): Page {
    return new Page(this.#place.url, thread, this.#place.key, 'default')
  }

  /** The run that waits, on a page that has not seen it begin. */
  async #open({ thread }: Addressed): Promise<{ readonly page: Page; readonly interrupt: Interrupt }> {
    const page = this.#page(thread)
    const { interrupts } = await page.run()
    expect(interrupts).toHaveLength(1)
    return { page, interrupt: interrupts[0]! }
  }
}

const lastTextIn = ({ text }: Page): string => text.at(-1)!.replace(/^assistant: /, '')
