/** Each operation of the OpenAPI document, asked in every wrong way that fits it: it answers as the document says. */
import { afterAll, describe, expect, test } from 'vitest'
import { ErrorBody } from '../../src/contract/problem.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { realShells } from '../conversations/fixtures.ts'
import type { Answer } from './fixtures.ts'
import { setHttp } from './fixtures.ts'
import type { Case } from './operations.ts'
import {
  METHODS,
  bodyTypes,
  document,
  isOfThing,
  isPublic,
  operations,
  parametersIn,
  pathOf as pathTo,
  takesJson,
  validBody,
  validHeaders,
  validQuery,
} from './operations.ts'

const http = await setHttp({ http: { trustProxy: ['127.0.0.1'] }, deps: { createShells: realShells() } })
afterAll(() => http[Symbol.asyncDispose]())
const existing = await http.create()

const pathOf = (one: Case, id = existing) => pathTo(one, id)

const ask = (one: Case, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  http.call(one.method, path, body, { accept: '*/*', ...headers })

/** The status is one of those that the document has for this operation, and the body an `ErrorBody`. */
function expectDocumented({ operation, method }: Case, answer: Answer, status: number): void {
  expect(answer.status, answer.text).toBe(status)
  expect(Object.keys(operation.responses), operation.operationId).toContain(String(status))
  if (method !== 'HEAD') expect(ErrorBody.strict().safeParse(answer.body).error, answer.text).toBeUndefined()
}

const table = (fits: (one: Case) => boolean): [string, Case][] =>
  operations.filter(fits).map((one): [string, Case] => [one.name, one])

test('the document has operations', () => {
  expect(operations.length).toBeGreaterThan(20)
})

/** Open routes that a request without a query, or without a body, does not fit. */
const UNFIT: Readonly<Record<string, number>> = { '/mcp/oauth/callback': 409, '/logins': 400 }

describe('without a key it is 401, unless the document requires none', () => {
  test.each(table(() => true))('%s', async (_, one) => {
    // From an address of its own, each: so many failures of one would be too many.
    const address = `203.0.113.${operations.indexOf(one) % 256}`
    const answer = await ask(one, pathOf(one), undefined, { authorization: '', 'x-forwarded-for': address })
    if (isPublic(one)) expect(answer.status).toBe(UNFIT[one.path] ?? 200)
    else expectDocumented(one, answer, 401)
  })
})

describe('with a key in the URL it is 400:', () => {
  test.each(table(() => true))('%s', async (_, one) => {
    expectDocumented(one, await ask(one, `${pathOf(one)}?access_token=x`), 400)
  })
})

/** Also those of paths with a parameter where this one has a word. */
function methodsThatFit(path: string): string[] {
  const fits = (pattern: string) => new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)
  return Object.entries(document.paths).flatMap(([pattern, methods]) => (fits(pattern) ? Object.keys(methods) : []))
}

describe('a method that the path does not have is 405, with the allowed ones:', () => {
  test.each(Object.keys(document.paths))('%s', async (path) => {
    const known = Object.keys(document.paths[path]!)
    for (const method of METHODS.filter((method) => !methodsThatFit(path).includes(method))) {
      const one = operations.find((each) => each.path === path)!
      const answer = await http.call(method.toUpperCase(), pathOf(one))
      expect(answer.status, `${method} ${answer.text}`).toBe(405)
      expect(ErrorBody.strict().parse(answer.body).error).toBe('method_not_allowed')
      for (const allowed of known) expect(answer.headers['allow']).toContain(allowed.toUpperCase())
    }
  })
})

describe('a body of a type that the operation does not accept is 415:', () => {
  test.each(table((one) => bodyTypes(one).length > 0 && !bodyTypes(one).includes('application/octet-stream')))(
    '%s',
    async (_, one) => {
      const answer = await ask(one, pathOf(one), '<a/>', { 'content-type': 'application/xml' })
      expectDocumented(one, answer, 415)
    },
  )
})

describe('a body that is not JSON, or has an unknown field, is 400', () => {
  test.each(table(takesJson))('%s', async (_, one) => {
    expectDocumented(one, await ask(one, pathOf(one), '{"half":'), 400)
    expectDocumented(one, await ask(one, pathOf(one), { no_such_field: 1 }), 400)
    if (one.operation.requestBody?.required) expectDocumented(one, await ask(one, pathOf(one)), 400)
  })
})

describe('a field of the wrong type is 400, and the answer says what it must be:', () => {
  test.each(table(takesJson))('%s', async (_, one) => {
    const valid = validBody(one)
    if (typeof valid !== 'object' || valid === null) return
    for (const wrong of [-0.5, 'no-such-value', [{}], { 'no such field': 1 }]) {
      for (const name of Object.keys(valid)) {
        const answer = await ask(one, pathOf(one), { ...valid, [name]: wrong })
        expect(answer.text, name).not.toMatch(/Invalid input"|Invalid input;/)
      }
    }
  })
})

describe('an invalid id is 400:', () => {
  test.each(table(({ path }) => path.includes('{id}')))('%s', async (_, one) => {
    expectDocumented(one, await ask(one, pathOf(one, 'not-an-id'), validBody(one)), 400)
  })
})

describe('a nonexistent conversation is 404:', () => {
  test.each(table(({ path }) => path.includes('{id}')))('%s', async (_, one) => {
    expectDocumented(
      one,
      await ask(one, pathOf(one, uuid7()) + validQuery(one), validBody(one), validHeaders(one)),
      404,
    )
  })
})

describe('something in a nonexistent conversation is 404, and deleting it succeeds:', () => {
  test.each(table(isOfThing))('%s', async (_, one) => {
    const answer = await ask(one, pathOf(one) + validQuery(one), validBody(one), validHeaders(one))
    // What to do to it may be refused first: nothing waits, say.
    if (answer.status >= 400) expectDocumented(one, answer, answer.status)
    else expect(Object.keys(one.operation.responses)).toContain(String(answer.status))
    expect(answer.status).toBeLessThan(500)
  })
})

describe('an invalid limit, cursor or parameter is 400:', () => {
  test.each(table((one) => parametersIn(one, 'query').length > 0))('%s', async (_, one) => {
    const names = parametersIn(one, 'query').map(({ name }) => name)
    if (names.includes('limit')) {
      for (const limit of ['0', '1001', 'many'])
        expectDocumented(one, await ask(one, `${pathOf(one)}?limit=${limit}`), 400)
    }
    // What is paged has to be there first.
    if (names.includes('page_id') && !isOfThing(one))
      expectDocumented(one, await ask(one, `${pathOf(one)}?page_id=nonsense`), 400)
    // An authorization server may add others.
    if (one.path === '/mcp/oauth/callback') expectDocumented(one, await ask(one, `${pathOf(one)}?code=%C3%BC`), 400)
    else expectDocumented(one, await ask(one, `${pathOf(one)}?no_such_parameter=1`), 400)
  })
})
