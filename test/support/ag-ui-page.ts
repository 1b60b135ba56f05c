/** A page that talks to an agent with the official client of AG-UI, which checks the form and the order of all events. */
import { EventType, HttpAgent } from '@ag-ui/client'
import type { BaseEvent, Interrupt, RunAgentParameters } from '@ag-ui/client'
import { EventSchema } from '@ag-ui/core/schemas'
import { expect } from 'vitest'

export type Ran = { events: BaseEvent[]; interrupts: Interrupt[]; outcome: string | undefined; last: any } // eslint-disable-line typescript/no-explicit-any

export class Page {
  readonly agent: HttpAgent
  constructor(url: string, threadId: string, key: string, profile = 'coder') {
    const headers = { authorization: `Bearer ${key}` }
    this.agent = new HttpAgent({ url: `${url}/ag-ui/${profile}`, threadId, headers })
  }
  async run(parameters: RunAgentParameters = {}, onEvent?: (event: BaseEvent) => void): Promise<Ran> {
    const events: BaseEvent[] = []
    let failed: Error | undefined
    await this.agent
      .runAgent(parameters, {
        onEvent({ event }) {
          events.push(event)
          onEvent?.(event)
        },
        onRunFailed({ error }) {
          failed = error
        },
      })
      .catch((error: unknown) => {
        failed = error as Error
      })
    if (failed && events.length === 0) throw failed
    for (const event of events) EventSchema.parse(event)
    const last = events.at(-1) as any // eslint-disable-line typescript/no-explicit-any
    expect(events.filter(({ type }) => type === EventType.RUN_STARTED)).toEqual([events[0]])
    return { events, last, interrupts: last?.outcome?.interrupts ?? [], outcome: last?.outcome?.type }
  }
  say(content: string, parameters: RunAgentParameters = {}, id = crypto.randomUUID()): Promise<Ran> {
    this.agent.addMessage({ id, role: 'user', content })
    return this.run(parameters)
  }
  get text() {
    return this.agent.messages.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : ''}`)
  }
}
