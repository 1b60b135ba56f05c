/** Several people look at the same requests, each in their own browser: whoever is second learns who was first. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [{ when: 'decide', turns: [bash('touch made'), { text: 'It is made.' }] }] })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const makeKey = async (name: string): Promise<string> =>
  (await stage.server.call('POST', '/keys', { name, scopes: ['read', 'write', 'approve'] })).body.key

async function ask(title: string): Promise<string> {
  const id = await stage.create({ title, permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'decide', run: true })
  return id
}

const cardOf = (page: Page, title: string) => page.locator('[data-request]', { hasText: title })

/** Resolves when the card takes an answer. */
async function armed(page: Page, title: string): Promise<void> {
  await cardOf(page, title).locator('button[data-key=a]:enabled').waitFor()
}

/** A person clicks again where the page says that the card has just moved. */
async function click(page: Page, title: string, key: 'a' | 'd'): Promise<void> {
  const card = cardOf(page, title)
  await armed(page, title)
  await card.locator(`button[data-key=${key}]`).click()
  await expect
    .poll(async () => {
      if ((await card.locator('.fault').count()) > 0) await card.locator(`button[data-key=${key}]`).click()
      return await card.count()
    })
    .toBe(0)
}

test('a request appears in the inbox of another tab, and is gone there when it is decided in the first', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url)
  const other = await openTab(browser, stage.server.url)
  for (const tab of [page, other.page]) await tab.waitForSelector('text=No agent needs you.')
  await ask('seen by both')
  for (const tab of [page, other.page]) await cardOf(tab, 'seen by both').waitFor()
  await click(page, 'seen by both', 'd')
  await other.page.waitForSelector('text=No agent needs you.')
  // Nobody was about to decide there.
  expect(await other.page.locator('.notice').count()).toBe(0)
  expect([...misdeeds, ...other.misdeeds]).toEqual([])
  await other.page.context().close()
  await page.context().close()
})

test('the second one of two who decide at the same time reads who was first', async () => {
  const [first, second] = [
    await openTab(browser, stage.server.url, { key: await makeKey('Ada') }),
    await openTab(browser, stage.server.url),
  ]
  await ask('wanted by two')
  await armed(first.page, 'wanted by two')
  // The answer of the second one is on the way while the first one is stored.
  const isDecided = Promise.withResolvers<void>()
  const isSent = Promise.withResolvers<void>()
  await second.page.route('**/requests/*', async (route) => {
    isSent.resolve()
    await isDecided.promise
    await route.continue()
  })
  const clicking = click(second.page, 'wanted by two', 'a')
  await isSent.promise
  await click(first.page, 'wanted by two', 'd')
  isDecided.resolve()
  await clicking
  const notices = () => second.page.locator('.notice').allInnerTexts()
  await expect.poll(notices).toEqual([expect.stringContaining('Somebody else was first: Answered by Ada.')])
  expect(await first.page.locator('.notice').count()).toBe(0)
  await second.page.context().close()
  await first.page.context().close()
})

test('who has the focus on a card that somebody else decides reads who it was, and has the next card', async () => {
  const [master, ada] = [
    await openTab(browser, stage.server.url),
    await openTab(browser, stage.server.url, { key: await makeKey('Ada') }),
  ]
  const ids = [await ask('taken'), await ask('next')]
  await armed(ada.page, 'next')
  await ada.page.keyboard.press('n')
  await expect.poll(() => cardOf(ada.page, 'taken').evaluate((card) => card.matches(':focus'))).toBe(true)
  await click(master.page, 'taken', 'd')
  await ada.page.waitForSelector(
    '.notice:has-text("Somebody else was first: Answered by somebody with the master key.")',
  )
  await expect.poll(() => cardOf(ada.page, 'taken').count()).toBe(0)
  expect(await cardOf(ada.page, 'next').evaluate((card) => card.matches(':focus'))).toBe(true)
  await stage.server.call('DELETE', `/conversations/${ids[1]}`)
  await ada.page.context().close()
  await master.page.context().close()
})
