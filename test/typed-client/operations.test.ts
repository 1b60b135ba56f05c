/** The client has every operation of the API, as the API description says it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AgentServerClient } from '../../src/client/client.ts'
import { createClient } from '../../src/client/client.ts'
import { OPERATIONS } from '../../src/client/operations/operations.ts'
import type { StreamRequest } from '../../src/client/events/stream-source.ts'

type Described = {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string }[]
  readonly requestBody?: { readonly content: Record<string, unknown> }
}

const OPENAPI = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi/openapi.json'), 'utf8')) as {
  readonly paths: Record<string, Record<string, Described>>
}

/** Browsers follow a redirect to it; a program has no use for its page. */
const OF_BROWSERS = ['finishMcpAuthorization']

const DESCRIBED = Object.entries(OPENAPI.paths)
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
  )
  .filter(({ operationId }) => !OF_BROWSERS.includes(operationId))

test('the table has each operation, with its route, its key and the type of its body', () => {
  const described = DESCRIBED.map(({ operationId, method, path, parameters = [], requestBody }) => [
    operationId,
    {
      method,
      route: path,
      isKeyed: parameters.some(({ name }) => name === 'idempotency-key'),
      sendsJson: requestBody?.content['application/json'] !== undefined,
    },
  ])
  expect(OPERATIONS).toEqual(Object.fromEntries(described))
})

test('each operation has a method', async () => {
  const called = new Set<string>()
  const note = (method: string, path: string) => called.add(operationAt(method, path))
  const client = createClient({
    baseUrl: 'http://client.test',
    fetch: async (input, init) => {
      const request = new Request(input, init)
      note(request.method, new URL(request.url).pathname)
      return Response.json({ items: [], last_seq: 0, status: 'idle', complete: true, text: '' })
    },
    // oxlint-disable-next-line require-yield -- it only notes the request
    async *streamSource({ path }: StreamRequest) {
      note('GET', path)
      throw new Error('noted')
    },
  })
  await callEverything(client)
  await callEverything(client.conversation('some-id'))
  expect([...called].sort()).toEqual(DESCRIBED.map(({ operationId }) => operationId).sort())
})

/** Calls each method of the object and of the objects in it; only the requests matter. */
async function callEverything(target: object): Promise<void> {
  for (const value of Object.values(target)) {
    if (typeof value === 'object' && value !== (target as AgentServerClient).api) await callEverything(value as object)
  }
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(target))
  for (const name of methods.filter((each) => each !== 'constructor')) await callOne(target, name)
}

async function callOne(target: object, name: string): Promise<void> {
  // A text where an id is expected, a list where files are, and an object anywhere else.
  const first = name === 'upload' ? [{ name: 'a', content: 'b' }] : Object.assign(new String('some-id'), {})
  const method = Reflect.get(target, name) as (...args: unknown[]) => unknown
  for (const args of [[first, {}], [first, 'text'], [{ tool_uses: [], request_id: 'some-id' }], []]) {
    try {
      const result = method.apply(target, args)
      if (typeof result === 'object' && result !== null && Symbol.asyncIterator in result)
        await Array.fromAsync(result as AsyncIterable<unknown>)
      else await result
    } catch {
      // Arguments of another method.
    }
  }
}

function operationAt(method: string, path: string): string {
  const fits = DESCRIBED.filter(
    (each) => each.method === method && new RegExp(`^${each.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )
  // A route without parameters comes before one with them.
  return fits.sort((a, b) => a.path.split('{').length - b.path.split('{').length)[0]?.operationId ?? `${method} ${path}`
}
