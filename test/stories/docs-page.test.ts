/** /docs in a real browser: the page shows the API, and calls it once the key was typed in. */
import type { Browser } from 'playwright-core'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY, startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { BROWSERS, findCommand } from '../../scripts/provide.mjs'

let browser: Browser | undefined
let server: TestServer

beforeAll(async () => {
  server = await startServer()
  browser = await chromium.launch({
    executablePath: findCommand(BROWSERS)!,
    args: ['--no-sandbox'],
    timeout: PATIENCE_MS,
  })
})
afterAll(async () => {
  await browser?.close()
  await server[Symbol.asyncDispose]()
})

async function openPage() {
  const page = await browser!.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  const complaints: string[] = []
  const asked: string[] = []
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => asked.push(request.url()))
  await page.goto(`${server.url}/docs`)
  await page.locator('#operations-server-info').waitFor()
  return { page, complaints, asked }
}

test('it shows every area of the API, asks nobody else for anything, and breaks none of its own rules', async () => {
  const { page, complaints, asked } = await openPage()
  expect(await page.title()).toBe('agent-server API')
  const document = (await server.call('GET', '/openapi.json')).body
  for (const { name } of document.tags) expect(await page.locator(`#operations-tag-${name}`).count(), name).toBe(1)
  expect(asked.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:'))).toEqual([])
  expect(complaints).toEqual([])
  await page.close()
})

test('it calls the API with the key that is typed into it, and with none before', async () => {
  const { page } = await openPage()
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
  expect(await page.locator('.auth-wrapper .authorize.locked').count(), 'the key is not kept').toBe(0)
  await page.close()
})
