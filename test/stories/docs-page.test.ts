/** /docs in a real browser: the page shows the API, and calls it with a key that is typed in, or with a login. */
import type { Browser, Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY, startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { BROWSERS, findCommand } from '../../scripts/provide.mjs'

type Operation = {
  operationId: string
  description: string
  requestBody?: { content: Record<string, { schema: { $ref?: string } } | undefined> }
}
type Document = {
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, { examples?: unknown[] }> }
}

/** The id of a thing that is not there. */
const UNKNOWN = '0199a1f0-0000-7000-8000-000000000000'

let browser: Browser | undefined
let server: TestServer
let document: Document
/** One page for all tests, in their order: to load it takes seconds. */
let page: Page
const complaints: string[] = []
const asked: string[] = []

beforeAll(async () => {
  server = await startServer()
  document = (await server.call('GET', '/openapi.json')).body
  browser = await chromium.launch({
    executablePath: findCommand(BROWSERS)!,
    args: ['--no-sandbox'],
    timeout: PATIENCE_MS,
  })
  page = await browser.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => asked.push(request.url()))
  await page.goto(`${server.url}/docs`)
  await page.locator('#operations-server-info').waitFor()
})
afterAll(async () => {
  await browser?.close()
  await server[Symbol.asyncDispose]()
})

test('it shows every area of the API, loads nothing from other hosts, and violates no policy', async () => {
  expect(await page.title()).toBe('agent-server API')
  for (const { name } of document.tags) expect(await page.locator(`#operations-tag-${name}`).count(), name).toBe(1)
  expect(asked.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:'))).toEqual([])
  expect(complaints).toEqual([])
})

test('a stream says how it is followed with curl, and cannot be waited for in the page', async () => {
  for (const path of ['/conversations/{id}/events/stream', '/firehose']) {
    expect(document.paths[path]!['get']!.description).toContain('\ncurl -N -H "Authorization: Bearer $KEY" "http://')
    expect(await canTryOut(path)).toBe(false)
  }
  expect(await canTryOut('/info')).toBe(true)
})

/** Asked of the page itself: to open an operation takes seconds. */
const canTryOut = (path: string) => page.evaluate(`ui.specSelectors.allowTryItOutFor('${path}', 'get')`)

test('the example of each request body is ASCII, and the server takes it as it stands', async () => {
  const { id } = (await server.call('POST', '/conversations', { llm_config: { model: 'none' } })).body
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const schema = operation.requestBody?.content['application/json']?.schema.$ref?.split('/').at(-1)
      return schema === undefined ? [] : [{ path, method, schema, ...operation }]
    }),
  )
  expect(operations.length).toBeGreaterThan(15)
  for (const { path, method, operationId, schema } of operations) {
    const example = JSON.stringify(document.components.schemas[schema]?.examples?.[0])
    expect(example, operationId).toMatch(/^[\x20-\x7e]+$/)
    const url = path.replace('{id}', id).replaceAll(/\{\w+\}/g, UNKNOWN)
    const { status, body } = await server.call(method.toUpperCase(), url, example)
    expect({ status, body }, operationId).not.toMatchObject({ body: { error: 'invalid_request' } })
    expect(status, operationId).toBeLessThan(500)
  }
})

test('it calls the API with the key that is typed into it, and with none before', async () => {
  const info = page.locator('#operations-server-info')
  await info.locator('.opblock-summary-control').click()
  await info.locator('.try-out__btn').click()
  await info.locator('.execute').click()
  const status = info.locator('.live-responses-table tbody .response-col_status').first()
  await expect.poll(() => status.textContent()).toContain('401')

  await page.locator('.auth-wrapper .authorize').first().click()
  await page.locator('.auth-container input').fill(KEY)
  await page.locator('.auth-container .authorize').click()
  await page.locator('.auth-container .btn-done').click()
  await info.locator('.execute').click()
  await expect.poll(() => status.textContent()).toContain('200')
  expect(await info.locator('.live-responses-table tbody .highlight-code').first().textContent()).toContain(
    '"agent-server"',
  )

  await page.reload()
  await page.locator('#operations-server-info').waitFor()
  const locks = page.locator('.auth-wrapper .authorize')
  await expect.poll(() => locks.getAttribute('class'), { message: 'the key survives a reload' }).toMatch(/\blocked\b/)
  expect(await page.evaluate('localStorage.length'), 'and is kept for this tab only').toBe(0)
  await locks.click()
  await page.locator('.auth-container .btn', { hasText: 'Logout' }).click()
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
})

test('it calls the API with the login of the browser, also to change something, and shows no half of it', async () => {
  const title = '<img src=x onerror=alert(1)>'
  await server.call('POST', '/conversations', { title, llm_config: { model: 'none' } })
  await page.goto(`${server.url}/ui/`)
  await page.fill('[name=password]', KEY)
  await page.click('button[type=submit]')
  await page.waitForSelector('nav.places')
  const value = await page.evaluate<string>(`localStorage.getItem('login')`)
  const dialogs: string[] = []
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  await page.goto(`${server.url}/docs`)
  await page.waitForSelector('text=Requests are sent with the login of this browser')
  for (const [id, shown] of [
    ['#operations-conversations-listConversations', title],
    ['#operations-keys-createKey', '"ask_'],
  ] as const) {
    const operation = page.locator(id)
    await operation.locator('.opblock-summary-control').click()
    await operation.locator('.try-out__btn').click()
    await operation.locator('.execute').click()
    await expect
      .poll(() => operation.locator('.live-responses-table .highlight-code').first().textContent())
      .toContain(shown)
  }
  expect(await page.content()).not.toContain(value)
  expect(dialogs).toEqual([])

  const { body } = await server.call('GET', '/logins')
  expect((await server.call('DELETE', `/logins/${body.items[0].id}`)).status).toBe(204)
  const list = page.locator('#operations-conversations-listConversations')
  await list.locator('.execute').click()
  const status = list.locator('.live-responses-table tbody .response-col_status').first()
  await expect.poll(() => status.textContent()).toContain('401')
})
