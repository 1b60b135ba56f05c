/** What is true of every log, whatever happened to its conversation: which event may follow which. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Event, EventOf } from '../../src/contract/events/event.ts'
import { Problem } from '../../src/contract/problem.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { readAll } from '../events/fixtures.ts'

/** Statuses in which no call of the main agent is open. */
const AT_REST: ReadonlySet<string> = new Set(['idle', 'finished', 'cancelled'])

type Opened = EventOf<'RequestOpened'>
type Ending = EventOf<'RequestAnswered'> | EventOf<'RequestClosed'>

/**
 * Checks all logs below a data directory, or those of these conversations: each request has one end, before the result of
 * its call; each call has one result, and each run and each subagent one `Result`; at rest, none lacks it. Passes over
 * logs that cannot be read.
 */
export async function expectRulesOnDisk(dataDir: string, wanted?: readonly string[]): Promise<void> {
  const directory = join(dataDir, 'sessions')
  const ids = wanted ?? (await readdir(directory).catch(() => []))
  for (const id of ids) expect(brokenRules(await eventsOnDisk(directory, id)), `the log of ${id}`).toEqual([])
}

async function eventsOnDisk(directory: string, id: string): Promise<Event[]> {
  try {
    await using log = await createJsonlStore({ directory }).view(id)
    return (await readAll(log, 1000)).map(({ event }) => event)
  } catch (error) {
    // It was deleted, or its test has damaged it.
    if (error instanceof Problem) return []
    throw error
  }
}

export function brokenRules(events: readonly Event[]): string[] {
  const reader = new RuleReader()
  for (const event of events) reader.take(event)
  reader.end()
  return reader.broken
}

/** The ids of the requests that wait, as the log has them. */
export function openIn(events: readonly Event[]): string[] {
  const reader = new RuleReader()
  for (const event of events) reader.take(event)
  return reader.open
}

class RuleReader {
  readonly broken: string[] = []
  /** The agent of each open call: the call that a subagent works for, or undefined for the main agent. */
  readonly #calls = new Map<string, string | undefined>()
  readonly #results = new Set<string>()
  /** The calls of each open request that still wait. A request without calls has one entry. */
  readonly #open = new Map<string, { readonly opened: Opened; readonly waiting: Set<string> }>()
  readonly #ended = new Set<string>()
  readonly #runs = new Map<string, 'active' | 'over'>()
  readonly #subagents = new Set<string>()
  #status = 'idle'
  #seq = 0

  take(event: Event): void {
    if (event.seq !== this.#seq + 1) this.#break(event, `follows ${this.#seq}`)
    this.#seq = event.seq
    switch (event.type) {
      case 'ToolUse':
        if (this.#calls.has(event.tool_use_id)) this.#break(event, 'has the id of an open call')
        this.#calls.set(event.tool_use_id, event.parent_tool_use_id)
        return
      case 'ToolResult':
        return this.#takeResult(event)
      case 'RequestOpened':
        return this.#takeOpened(event)
      case 'RequestAnswered':
      case 'RequestClosed':
        return this.#takeEnding(event)
      case 'SubagentStart':
        this.#subagents.add(event.parent_tool_use_id)
        return
      case 'Result':
        return this.#takeEnd(event)
      case 'StatusUpdate':
        return this.#takeStatus(event)
      default:
        return
    }
  }

  get open(): string[] {
    return [...this.#open.keys()]
  }

  end(): void {
    if (!AT_REST.has(this.#status)) return
    const isOfMain = (id: string) => this.#calls.has(id) && this.#calls.get(id) === undefined
    for (const id of this.#calls.keys()) if (isOfMain(id)) this.broken.push(`at rest, ${id} has no result`)
    for (const { opened } of this.#open.values())
      if (opened.tool_use_ids.some(isOfMain)) this.broken.push(`at rest, ${opened.request_id} waits`)
    for (const [id, phase] of this.#runs) if (phase === 'active') this.broken.push(`at rest, run ${id} has no Result`)
  }

  #takeResult(event: EventOf<'ToolResult'>): void {
    const { tool_use_id: id } = event
    if (!this.#calls.delete(id))
      this.#break(event, this.#results.has(id) ? `is the second result of ${id}` : `is of no call: ${id}`)
    this.#results.add(id)
    for (const { opened, waiting } of this.#open.values())
      if (waiting.has(id)) this.#break(event, `of ${id} comes before the end of ${opened.request_id}`)
  }

  #takeOpened(event: Opened): void {
    const { request_id: id, tool_use_ids: calls } = event
    if (this.#open.has(id) || this.#ended.has(id)) this.#break(event, `opens ${id} again`)
    for (const call of calls)
      if (!this.#calls.has(call)) this.#break(event, `is about a call that is not open: ${call}`)
    this.#open.set(id, { opened: event, waiting: new Set(calls.length > 0 ? calls : [id]) })
  }

  #takeEnding(event: Ending): void {
    const { request_id: id } = event
    const request = this.#open.get(id)
    if (!request) return this.#break(event, this.#ended.has(id) ? `ends ${id} again` : `is of no request: ${id}`)
    const isPartial = event.type === 'RequestAnswered' && event.kind === 'permission'
    for (const call of isPartial ? event.tool_use_ids : request.waiting)
      if (!request.waiting.delete(call)) this.#break(event, `decides ${call} again`)
    if (request.waiting.size > 0) return
    this.#open.delete(id)
    this.#ended.add(id)
  }

  #takeEnd(event: EventOf<'Result'>): void {
    const { parent_tool_use_id: subagent, run_id: run = '' } = event
    if (subagent === undefined) {
      if (this.#runs.get(run) !== 'active') this.#break(event, `is not of an active run: ${run}`)
      this.#runs.set(run, 'over')
      return
    }
    if (!this.#subagents.delete(subagent)) this.#break(event, `is of no subagent that works: ${subagent}`)
    for (const [call, agent] of this.#calls)
      if (agent === subagent) this.#break(event, `comes before the result of ${call}`)
  }

  #takeStatus(event: EventOf<'StatusUpdate'>): void {
    const { status, run_id: run } = event
    this.#status = status
    if (run === undefined || (status !== 'running' && !status.startsWith('waiting_'))) return
    if (this.#runs.get(run) === 'over') this.#break(event, `continues run ${run} after its Result`)
    this.#runs.set(run, 'active')
  }

  #break({ seq, type }: Event, how: string): void {
    this.broken.push(`event ${seq}, ${type}, ${how}`)
  }
}
