/** Bodies of which one value is another one, by each protocol: the server refuses or ignores it, and never fails. */
import { afterAll, expect, test } from 'vitest'
import { setStageHere } from '../support/agent.ts'
import { PROTOCOL_BODIES, UUID } from '../support/protocol-bodies.ts'
import { KEY } from '../support/server.ts'

const env = { OPENHANDS_PROTOCOLS: 'openai,ai-sdk,ag-ui,mcp,a2a' }
const stage = await setStageHere(() => ({ text: 'Read.' }), env)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
await server.call('PUT', '/profiles/default', { tools: [], llm_config: LLM })

/** Values that are no text, and cannot become one. */
const NO_TEXTS = [{ toString: 1 }, [{ type: { toString: 1 }, role: { toString: 1 } }]]
const OTHERS = [
  null,
  true,
  -1,
  1e308,
  '',
  ' ',
  '\u0000',
  '\ud800',
  '../../etc',
  '__proto__',
  'x'.repeat(70_000),
  [],
  [[]],
  [null],
  {},
  { length: -1 },
  UUID,
  `resp_${'0'.repeat(32)}_${'9'.repeat(20)}`,
  `${UUID}-0`,
  `${UUID}.99999999999999`,
  'data:image/png;base64,@@@',
  JSON.parse('{"__proto__": {"x": 1}}'),
  'é'.repeat(300),
  Array.from({ length: 3000 }, () => ({ role: 'user', content: 'a' })),
  { type: 'mcp_approval_response' },
]
/** Further values of each place: the places have different ones. */
const OF_PLACE = 2

type Path = readonly string[]

function pathsIn(value: unknown, path: Path = []): Path[] {
  const fields = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return [path, ...fields.flatMap(([name, each]) => pathsIn(each, [...path, name]))]
}

function withValue(body: unknown, [name, ...path]: Path, value: unknown): unknown {
  if (name === undefined) return value
  const copy = Array.isArray(body) ? [...body] : { ...Object(body) }
  copy[name] = withValue(copy[name], path, value)
  return copy
}

/** Those of MCP name the method and the tool or task, too. */
function headersFor(
  path: string,
  { method, params }: { method?: unknown; params?: { name?: unknown; taskId?: unknown } },
) {
  const name = params?.name ?? params?.taskId
  const plain = (text: unknown) => (typeof text === 'string' ? text.replaceAll(/[^ -~]/g, '').slice(0, 1000) : '')
  const ofMcp = path === '/mcp' && { 'mcp-method': plain(method), 'mcp-name': plain(name) }
  return {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'a2a-version': '1.0',
    ...ofMcp,
  }
}

test.each(PROTOCOL_BODIES)('%s does not fail, whatever a value of the body is', async (path, body) => {
  const faults: string[] = []
  let next = 0
  for (const place of pathsIn(body))
    for (const value of [...NO_TEXTS, ...Array.from({ length: OF_PLACE }, () => OTHERS[next++ % OTHERS.length])]) {
      const changed = withValue(body, place, value)
      const response = await fetch(server.url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${KEY}`,
          'content-type': 'application/json',
          ...headersFor(path, Object(changed)),
        },
        body: JSON.stringify(changed) ?? '',
      })
      const text = await response.text()
      const isFault = response.status >= 500 || text.includes('-32603') || text.includes('error_id')
      if (isFault)
        faults.push(`${place.join('.')} = ${JSON.stringify(value)?.slice(0, 80)}: ${response.status} ${text}`)
    }
  expect(faults).toEqual([])
})
