/** A page that is older than its server: what it cannot show is a note, and all else goes on working. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [{ turns: [bash('touch made'), { text: 'It is made.' }] }]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

type Item = Record<string, unknown>

/** Changes what the server says in a list. */
const alter = (page: Page, pattern: string, change: (item: Item) => void) =>
  page.route(pattern, async (route) => {
    const response = await route.fetch()
    const list = (await response.json()) as { items: Item[] }
    list.items.forEach(change)
    await route.fulfill({ response, json: list })
  })

const NOTE = '.fault:has-text("This page cannot show")'

test('an event, a row of a list and a request of another form are notes among what is shown', async () => {
  const id = await stage.create({ title: 'made', permission_mode: 'bypass' })
  await stage.say(id, 'make')
  const asking = await stage.create({ title: 'asks', permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${asking}/messages`, { message: 'make', run: true })
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  await page.waitForSelector('[data-request]')

  await alter(page, '**/events?*', (event) => event['type'] === 'ToolUse' && delete event['name'])
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector(`.placed ${NOTE}`)
  await page.waitForSelector('.said:has-text("It is made.")')
  await alter(page, '**/summaries?*', (row) => row['title'] === 'made' && (row['title'] = { of: 'another form' }))
  await goTo(page, '#/conversations')
  await page.waitForSelector(`.placed ${NOTE}`)
  await page.waitForSelector('.summary:has-text("asks")')
  await alter(page, '**/requests?*', ({ request }) => delete (request as Item)['payload'])
  await page.reload()
  await goTo(page, '#/')
  await page.waitForSelector(`section ${NOTE}`)
  await goTo(page, '#/settings')
  await page.waitForSelector('h1:has-text("Settings")')
  expect(await page.locator(NOTE).count()).toBe(0)
  // The browser says what is wrong to whoever looks there.
  expect(misdeeds.length).toBeGreaterThanOrEqual(3)
  expect(misdeeds.filter((one) => !one.startsWith('exception'))).toEqual([])
  await page.context().close()
})
