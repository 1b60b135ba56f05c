/** Text that a model, a tool, a client, a project or an MCP server has written never reaches a terminal as it is. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { HeadlessOutput, type Streams } from '../../../src/cli/headless/write-output.ts'
import { createEventPrinter } from '../../../src/cli/demo/event-printer.ts'
import type { Event } from '../../../src/contract/events/event.ts'
import type { TransientEvent } from '../../../src/contract/events/transient-event.ts'
import { logEvents } from '../../../src/conversations/log-events.ts'
import type { EventLog } from '../../../src/events/event-log.ts'
import { createTerminalApprover } from '../../../src/sdk/answers/terminal-approver.ts'
import { createLogger } from '../../../src/telemetry/logger.ts'
import { safeJson, styledText } from '../../../src/telemetry/plain-text.ts'
import { loadPrettyLines } from '../../../src/telemetry/pretty-lines.ts'
import type { Schema } from '../../http/samples.ts'
import { some } from '../../support/some.ts'

const ROOT = join(import.meta.dirname, '../../..')

/** Sets the clipboard and the title, links, moves, clears, hides, overwrites and turns around, by C0 and C1 characters. */
const HOSTILE = [
  '\u001B]52;c;cm0gLXJm\u0007',
  '\u001B]0;title\u001B\\',
  '\u001B]8;;https://evil.example\u001B\\link\u001B]8;;\u001B\\',
  '\u001B[2J\u001B[1;1H\u001B[8mhidden\u001B[0m',
  '\u001BPq\u001B\\\u001Bc',
  '\u009B2J\u009D52;c;eA==\u009C\u0090q\u009C',
  'rm -rf\rls\b\b\u0007\u007F\u0000',
  '\u202Eevil\u2066\u200F\u061C\u2028',
  'first\nINFO: a line of its own',
].join(' ')

// oxlint-disable-next-line no-control-regex -- what a terminal obeys, except tab and line feed
const OBEYED = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/
// oxlint-disable-next-line no-control-regex -- bold, dim, and colors of the program itself
const OWN_STYLES = /\x1b\[(?:0|1|2|3[1-69]|22|90)m/g

const isPlain = (text: string) => !OBEYED.test(text)

type Schemas = Readonly<Record<string, Schema & { readonly additionalProperties?: Schema | boolean }>>
const { schemas } = (
  JSON.parse(await readFile(join(ROOT, 'openapi/openapi.json'), 'utf8')) as { components: { schemas: Schemas } }
).components

/** All its fields, with the text wherever there is one. */
function hostileOf(schema: Schemas[string], depth = 0): unknown {
  if (schema.$ref !== undefined) return hostileOf(schemas[schema.$ref.split('/').at(-1)!]!, depth)
  const fixed = schema.const ?? schema.enum?.[0]
  if (fixed !== undefined) return fixed
  const choice = schema.anyOf?.[0] ?? schema.oneOf?.[0]
  if (choice) return hostileOf(choice, depth)
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((each) => hostileOf(each, depth))) as unknown
  switch (schema.type) {
    case 'object': {
      const { properties = {}, additionalProperties } = schema
      const fields = Object.entries(properties).map(([name, each]) => [name, hostileOf(each, depth + 1)] as const)
      return Object.fromEntries(additionalProperties && depth < 5 ? [...fields, [HOSTILE, HOSTILE]] : fields)
    }
    case 'array':
      return depth < 6 ? [hostileOf(schema.items ?? {}, depth + 1)] : []
    case 'integer':
    case 'number':
      return 1
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return HOSTILE
  }
}

/** Each kind of a request has a shape of its own. */
function shapesOf(schema: Schemas[string]): Schemas[string][] {
  const named = schema.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)!]!
  return named.oneOf?.flatMap(shapesOf) ?? [named]
}

const events = shapesOf(schemas['Event']!).map((each) => hostileOf(each) as Event)

/** Collects what is written. */
function createStreams(isTTY: boolean): Streams & { readonly written: () => string } {
  const written: string[] = []
  const stream = { isTTY, on: () => {}, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream
  return { stdout: stream, stderr: stream, written: () => written.join('') }
}

describe('each text of each event', () => {
  test('is one of those that the documentation has', () => {
    expect(events.length).toBeGreaterThan(25)
    expect(events.every((event) => JSON.stringify(event).includes('evil.example'))).toBe(true)
  })

  test.each([true, false])('is plain where they are printed live (color: %s)', (color) => {
    const written: string[] = []
    const printer = createEventPrinter({ write: (text) => written.push(text), color })
    for (const event of events) printer.event(event)
    printer.event(hostileOf(schemas['AssistantDelta']!) as TransientEvent)
    const text = written.join('')
    expect(text).toContain('evil')
    expect(isPlain(color ? text.replaceAll(OWN_STYLES, '') : text)).toBe(true)
  })

  test.each(['text', 'stream-json'] as const)(
    'is plain in the output of a run without the chat: %s',
    async (format) => {
      const streams = createStreams(true)
      const output = new HeadlessOutput(format, streams)
      for (const event of events) output.event(event)
      const result = { final_text: HOSTILE, structured_output: { [HOSTILE]: HOSTILE } }
      await output.end({ status: 'idle', result, denied: [], steps: 1 } as never, HOSTILE, 0)
      expect(streams.written()).toContain('evil')
      expect(isPlain(streams.written().replaceAll(OWN_STYLES, ''))).toBe(true)
    },
  )

  test.each([true, false])('is plain in the log for a person, on one line (color: %s)', async (color) => {
    const lines = await logged(await loadPrettyLines({ color }))
    expect(lines.filter((line) => !isPlain(line.replaceAll(OWN_STYLES, '')))).toEqual([])
    expect(lines.filter((line) => /\n[^\s{}]/.test(line))).toEqual([])
  })

  test('is plain in the log for programs, whose JSON says the same', async () => {
    const lines = await logged(safeJson)
    expect(lines.filter((line) => !isPlain(line))).toEqual([])
    const last = JSON.parse(lines.at(-1)!) as { field: string }
    expect(last.field).toBe(HOSTILE)
  })
})

/** The lines of `visualize`, one per event, and one of another message with its fields. */
async function logged(render: (line: string) => string): Promise<string[]> {
  const lines: string[] = []
  const logger = createLogger({
    level: 'DEBUG',
    redact: (line) => line,
    render(line) {
      lines.push(render(line))
      return ''
    },
  })
  const subscribers: ((all: { event: Event }[]) => void)[] = []
  const log = {
    conversationId: 'x',
    subscribe: ({ onEvents }: { onEvents: (all: { event: Event }[]) => void }) => subscribers.push(onEvents),
  } as unknown as EventLog
  logEvents(log, logger)
  for (const event of events) subscribers[0]!([{ event }])
  logger.warn({ field: HOSTILE, [HOSTILE]: { deep: [HOSTILE] }, err: new Error(HOSTILE) }, HOSTILE)
  expect(lines).toHaveLength(events.length + 1)
  return lines
}

test('a question of the SDK at the terminal shows tools, inputs, reasons and rules as plain text', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const approver = createTerminalApprover({ input, output })
  const asked = approver.canUseTool(HOSTILE, { [HOSTILE]: HOSTILE }, {
    signal: new AbortController().signal,
    reason: HOSTILE,
    rules: [HOSTILE],
  } as never)
  input.write('y\n')
  expect(await asked).toEqual({ behavior: 'allow' })
  expect(isPlain(String(output.read()))).toBe(true)
})

test('the last check before the terminal removes everything except the styles of the program', () => {
  expect(styledText(`\u001B[1mbold\u001B[0m\t${HOSTILE}\n`).replaceAll(OWN_STYLES, '')).toMatch(/^bold\t.*\n$/s)
  expect(isPlain(styledText(HOSTILE).replaceAll(OWN_STYLES, ''))).toBe(true)
})

/** The sinks, each of which makes text plain, and programs of the sandbox, whose output is read by the server. */
const WRITERS = new Set([
  'cli/terminal/terminal.ts',
  'cli/terminal/exit.ts',
  'cli/headless/write-output.ts',
  'cli/chat/screen.ts',
  'sandbox/network-listener.ts',
])

test('nothing else writes to the streams of the process', async () => {
  const names = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'))
  const texts = await Promise.all(
    some('sources', names).map(async (name) => [name, await readFile(join(ROOT, 'src', name), 'utf8')] as const),
  )
  const WRITING = /\bconsole\.\w+\(|\b(?:stdout|stderr)\.write\((?!'')|\bwriteSync\([12],/
  expect(
    texts.flatMap(([name, text]) => (WRITING.test(text) ? [name] : [])).filter((name) => !WRITERS.has(name)),
  ).toEqual([])
})
