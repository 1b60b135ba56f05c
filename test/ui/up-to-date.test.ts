/** What an open page shows is what is true now: it is read again when something has changed it, and not more often. */
import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { goTo, newContext, openTab, watchConnection } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [{ when: 'make', turns: [bash('touch made.txt; sleep 600 > /dev/null & echo'), { text: 'Made.' }] }]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

test('a page that is loaded reads its lists before it is connected and once more when it is', async () => {
  const context = (await openTab(browser, stage.server.url)).page.context()
  const page = await context.newPage()
  await page.clock.install()
  const connected = watchConnection(page)
  const paths = ['/requests', '/conversations/summaries']
  const [begun, ended] = [new Map<string, number>(), new Map<string, number>()]
  const countIn = (reads: Map<string, number>) => (request: Request) => {
    const { pathname } = new URL(request.url())
    reads.set(pathname, (reads.get(pathname) ?? 0) + 1)
  }
  page.on('request', countIn(begun)).on('requestfinished', countIn(ended)).on('requestfailed', countIn(ended))
  await page.goto(`${stage.server.url}/ui/#/conversations`)
  await connected()
  await expect.poll(() => paths.map((path) => ended.get(path))).toEqual([2, 2])
  // What was wanted meanwhile is read after a pause: all that there is to read is asked for before this request.
  await page.clock.fastForward(3000)
  await page.evaluate(() => fetch('../alive'))
  expect(paths.map((path) => begun.get(path))).toEqual([2, 2])
  await context.close()
})

const setOffline = async (page: Page) => {
  await page.context().setOffline(true)
  await page.waitForSelector('.lost:has-text("No connection")')
}

test('what was read before the connection was lost, or could not be read without one, is read when it is back', async () => {
  const { page } = await openTab(browser, stage.server.url, { hash: '#/server' })
  await page.waitForSelector('text=Name of a new key')
  await setOffline(page)
  await stage.server.call('POST', '/keys', { name: 'made meanwhile', scopes: ['read'] })
  await page.context().setOffline(false)
  await expect.poll(() => page.locator('strong:text-is("made meanwhile")').count()).toBe(1)
  await setOffline(page)
  await goTo(page, '#/costs')
  await page.waitForSelector('main .fault[role=alert]')
  await page.context().setOffline(false)
  await expect.poll(() => page.locator('main .fault').count()).toBe(0)
  await page.context().close()
})

test('what today costs is read again each minute', async () => {
  const { page } = await openTab(browser, stage.server.url)
  await page.clock.install()
  await page.reload()
  await page.waitForSelector('text=Today costs')
  let readCount = 0
  page.on('request', (request) => (readCount += request.url().includes('/usage?') ? 1 : 0))
  await page.clock.fastForward(61_000)
  await expect.poll(() => readCount).toBeGreaterThanOrEqual(1)
  await page.context().close()
})

test('files and processes that an agent makes appear in their lists', async () => {
  const id = await stage.create({ title: 'makes', permission_mode: 'bypass' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/files` })
  const other = await page.context().newPage()
  await other.goto(`${stage.server.url}/ui/#/c/${id}/commands`)
  await other.waitForSelector('text=No process runs')
  await page.waitForSelector('text=This directory is empty')
  await stage.say(id, 'make')
  await expect.poll(() => page.locator('.line:has-text("made.txt")').count()).toBe(1)
  await expect.poll(() => other.locator('.pair:has-text("sleep 600")').count()).toBe(1)
  await page.context().close()
})

test('who logs in on a page that has been open for long reads that the server has another one', async () => {
  const page = await (await newContext(browser)).newPage()
  await page.clock.install()
  await page.goto(`${stage.server.url}/ui/`)
  await page.waitForSelector('[name=password]')
  await page.route('**/ui/', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, body: (await response.text()).replaceAll(/main-[\w-]+/g, 'main-00000000') })
  })
  await page.clock.fastForward(3_600_000)
  await page.fill('[name=password]', KEY)
  await page.click('button[type=submit]')
  await expect.poll(() => page.locator('.lost:has-text("new version")').count()).toBe(1)
  await page.context().close()
})
