/** The client of AG-UI for npm, which checks the order of all events, and their schemas in `@ag-ui/core`. */
import assert from 'node:assert/strict'
import { EventType, HttpAgent } from '@ag-ui/client'
import type { BaseEvent, Interrupt, RunAgentParameters } from '@ag-ui/client'
import { EventSchema } from '@ag-ui/core/schemas'
import * as cases from './cases.ts'

type Finished = { readonly outcome?: Record<string, unknown> & { readonly interrupts?: readonly Interrupt[] } }

class Page {
  readonly agent: HttpAgent
  events: BaseEvent[] = []

  constructor(key = cases.KEY_OF_SERVER) {
    const url = `${cases.URL_OF_SERVER}/ag-ui/default`
    this.agent = new HttpAgent({ url, threadId: crypto.randomUUID(), headers: { authorization: `Bearer ${key}` } })
  }

  async run(parameters: RunAgentParameters = {}): Promise<Finished> {
    this.events = []
    let failed: Error | undefined
    const onRunFailed = ({ error }: { error: Error }) => void (failed = error)
    const onEvent = ({ event }: { event: BaseEvent }) => void this.events.push(event)
    await this.agent.runAgent(parameters, { onEvent, onRunFailed })
    if (failed) throw failed
    for (const event of this.events) EventSchema.parse(event)
    assert.equal(this.events.at(-1)?.type, EventType.RUN_FINISHED)
    return this.events.at(-1) as Finished
  }

  say(content: string, parameters?: RunAgentParameters): Promise<Finished> {
    this.agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
    return this.run(parameters)
  }

  get answer(): unknown {
    return this.agent.messages.findLast(({ role }) => role === 'assistant')?.content
  }
}

async function decide(approved: boolean): Promise<string> {
  const page = new Page()
  const { outcome } = await page.say(cases.COMPUTE)
  const [interrupt] = outcome?.interrupts ?? []
  assert.ok(interrupt)
  assert.ok(interrupt.message?.includes(cases.COMMAND))
  const payload = { approved, ...(!approved && { message: cases.REASON }) }
  await page.run({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] })
  return String(page.answer)
}

await cases.runCases({
  async text() {
    const page = new Page()
    assert.equal((await page.say(cases.SLOWLY)).outcome?.['type'], 'success')
    assert.equal(page.answer, cases.WORDS)
    assert.ok(page.events.filter(({ type }) => type === EventType.TEXT_MESSAGE_CONTENT).length > 1)
    assert.ok(page.agent.messages.some(({ role }) => role === 'reasoning'))
  },
  async tool() {
    const page = new Page()
    await page.say(cases.PLAN)
    assert.ok(page.events.some(({ type }) => type === EventType.TOOL_CALL_RESULT))
    assert.match(String(page.answer), /^Read: /)
  },
  async allow() {
    assert.match(await decide(true), cases.RESULT)
  },
  async deny() {
    cases.assertDenied(await decide(false), cases.REASON)
  },
  async function() {
    const page = new Page()
    const parameters = {
      tools: [{ name: 'look_up', description: 'Looks an order up.', parameters: { type: 'object' } }],
    }
    const { outcome } = await page.say(cases.LOOK_UP, parameters)
    const [toolCallId] = outcome!['pendingToolCallIds'] as string[]
    page.agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: toolCallId!, content: cases.SHIPPED })
    await page.run(parameters)
    assert.equal(page.answer, `Read: ${cases.SHIPPED}`)
  },
  async question() {
    const page = new Page()
    const [interrupt] = (await page.say('which one')).outcome?.interrupts ?? []
    const payload = { answers: { 0: 'PostgreSQL' } }
    await page.run({ resume: [{ interruptId: interrupt!.id, status: 'resolved', payload }] })
    assert.match(String(page.answer), /PostgreSQL/)
  },
  async stop() {
    const page = new Page()
    const running = page.say(cases.ENDLESS)
    await cases.eventually(() => String(page.answer).includes('word word'))
    const reply = await fetch(`${page.agent.url}/stop`, {
      method: 'POST',
      headers: { ...page.agent.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ threadId: page.agent.threadId }),
    })
    assert.ok(reply.ok)
    assert.equal((await running).outcome?.['type'], 'cancelled')
    await page.say(cases.HELLO)
    assert.equal(page.answer, cases.GREETING)
  },
  async 'wrong key'() {
    await assert.rejects(new Page(cases.WRONG_KEY).say(cases.HELLO), /401/)
  },
})
