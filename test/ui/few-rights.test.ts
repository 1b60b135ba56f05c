/** Keys with few rights, a slow network and a server that is away: what the page offers works, and nothing is lost or doubled. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [{ when: 'hello', turns: [{ text: 'Hello there.' }] }]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const SCREENS = ['', 'conversations', 'new', 'costs', 'webhooks', 'server', 'settings']

async function visit(page: Page, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) {
    await goTo(page, `#/${hash}`)
    await page.waitForSelector('h1')
    await page.waitForSelector('.loading', { state: 'detached' })
  }
}

test.each([
  [['read'], []],
  [
    ['read', 'approve', 'files'],
    ['/files', '/changes'],
  ],
])('a key that may %j asks for nothing that is refused', async (scopes, tabs) => {
  const id = await stage.create({ title: 'few rights', permission_mode: 'default' })
  const { body } = await stage.server.call('POST', '/keys', { name: 'few', scopes })
  const refused: string[] = []
  const { page, misdeeds } = await openTab(browser, stage.server.url, { key: body.key })
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url())
  })
  await visit(page, [...SCREENS, ...['', '/timeline', '/settings', ...tabs].map((tab) => `c/${id}${tab}`)])
  expect(refused).toEqual([])
  expect(misdeeds).toEqual([])
  await page.context().close()
})

test('a message that is being sent is sent once, and what is typed meanwhile stays', async () => {
  const id = await stage.create({ title: 'slow' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const arrived = Promise.withResolvers<void>()
  let posts = 0
  await page.route('**/messages', async (route) => {
    posts++
    await arrived.promise
    await route.continue()
  })
  await page.fill('.composer textarea', 'hello')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.composer button:disabled')
  await page.keyboard.press('Control+Enter')
  await page.keyboard.type(' and more')
  arrived.resolve()
  await page.waitForSelector('.said.user:has-text("hello")')
  await expect.poll(() => page.inputValue('.composer textarea')).toBe(' and more')
  expect(posts).toBe(1)
  expect(await page.locator('.said.user').count()).toBe(1)
  await page.context().close()
})

test('a conversation that was opened while the server was away is there when it is back', async () => {
  const id = await stage.create({ title: 'away' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/changes` })
  // A comment on a line is a draft, too.
  await page.evaluate(
    `localStorage.setItem('draft comments ${id}', '[{"path":"a.txt","side":"new","number":1,"text":"x","base":"head","comment":"why?"}]')`,
  )
  await page.waitForSelector('h1:has-text("away")')
  await stage.server.stop('SIGKILL')
  await page.waitForSelector('.lost')
  await goTo(page, '#/conversations')
  await goTo(page, `#/c/${id}/changes`)
  await page.waitForSelector('.conversation > .fault')
  await stage.server.restart()
  await page.waitForSelector('h1:has-text("away")')
  await page.waitForSelector('.conversation > .fault', { state: 'detached' })
  await page.waitForSelector('button:has-text("Send 1 comment")')
  await goTo(page, '#/settings')
  await page.click('text=Log out')
  await page.waitForSelector('[name=password]')
  expect(await page.evaluate(`Object.keys(localStorage).filter((name) => name.startsWith('draft'))`)).toEqual([])
  await page.context().close()
})

test('a page whose first connection fails says so, and connects as soon as it can', async () => {
  const { page } = await openTab(browser, stage.server.url)
  await page.route('**/stream-tickets', (route) => route.abort())
  await page.reload()
  await page.waitForSelector('.lost')
  await page.unroute('**/stream-tickets')
  await page.waitForSelector('.lost', { state: 'detached' })
  // What happens from now on comes by that connection.
  const id = await stage.create({ title: 'connected again' })
  await stage.say(id, 'hello')
  await page.waitForSelector('.unseen:has-text("The agent: finished")', { state: 'attached' })
  expect(await page.locator('.lost').count()).toBe(0)
  await page.context().close()
})

test('a page without a network says so, and misses, doubles and forgets nothing when it is back', async () => {
  const id = await stage.create({ title: 'offline' })
  await stage.say(id, 'hello')
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.waitForSelector('.end')
  await page.context().setOffline(true)
  await page.waitForSelector('.lost')
  await page.fill('.composer textarea', 'a draft')
  await stage.say(id, 'hello')
  expect(await page.locator('.end').count()).toBe(1)
  await page.context().setOffline(false)
  await expect.poll(() => page.locator('.end').count()).toBe(2)
  await page.waitForSelector('.lost', { state: 'detached' })
  expect(await page.locator('.said.user').count()).toBe(2)
  expect(await page.inputValue('.composer textarea')).toBe('a draft')
  await page.context().close()
})

test('what is sent again because its answer was lost has its effect once', async () => {
  const id = await stage.create({ title: 'lost answers' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  let isCut = true
  let lost = 0
  // The server gets the request, and the page no answer.
  await page.route(/\/(?:messages|conversations)$/, async (route) => {
    if (!isCut || route.request().method() !== 'POST') return await route.continue()
    // Only the browser itself says where the request comes from.
    const headers = { ...(await route.request().allHeaders()), 'sec-fetch-site': 'same-origin' }
    if ((await route.fetch({ headers })).ok()) lost += 1
    return await route.abort()
  })
  await page.fill('.composer textarea', 'hello')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.notice.fault')
  expect(lost).toBeGreaterThan(0)
  expect(await page.inputValue('.composer textarea')).toBe('hello')
  isCut = false
  await page.keyboard.press('Control+Enter')
  await expect.poll(() => page.inputValue('.composer textarea')).toBe('')
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(1)

  // It was seen to arrive, and is said once more.
  const sayAgain = async () => {
    await page.fill('.composer textarea', 'go on')
    await page.waitForSelector('.composer button:enabled')
    await page.keyboard.press('Control+Enter')
  }
  isCut = true
  await sayAgain()
  await expect.poll(() => stage.events(id, 'types=UserMessage')).toHaveLength(2)
  await page.waitForSelector('.composer button:enabled')
  await page.fill('.composer textarea', '')
  isCut = false
  await sayAgain()
  await expect.poll(() => page.inputValue('.composer textarea')).toBe('')
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(3)

  isCut = true
  const keys: (string | undefined)[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/conversations')) keys.push(request.headers()['idempotency-key'])
  })
  await goTo(page, '#/new')
  await page.fill('[name=message]', 'a new one')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('form .fault')
  isCut = false
  for (const message of ['a new one', 'another one']) {
    await page.fill('[name=message]', message)
    const answered = page.waitForResponse('**/conversations')
    await page.keyboard.press('Control+Enter')
    await answered
    await page.waitForSelector('form .fault')
  }
  expect(new Set(keys.slice(0, -1)).size).toBe(1)
  expect(keys.at(-1)).not.toBe(keys[0])
  await page.context().close()
})
