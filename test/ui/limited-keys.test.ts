/** Keys that are limited to a user, a profile or some conversations: the page has no control that the server would refuse. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, newContext, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const USER = 'user-17'
const PROFILE = 'careful'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'hello', turns: [{ text: 'Hello there.' }] },
    { when: 'permission', turns: [bash('touch made'), { text: 'Done.' }] },
  ]
  stage = await setStage({ replies }, {})
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  await stage.server.call('PUT', `/profiles/${PROFILE}`, { llm_config, permission_mode: 'default' })
  await stage.server.restart(undefined, {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: stage.model.baseUrl,
    LLM_API_KEY: 'scripted-model-key',
  })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

type Opened = { readonly page: Page; readonly refused: readonly string[] }

/** `refused` has what the server does not permit. */
async function openAs(limits: object, hash = '', scopes = ['read', 'write', 'approve', 'files']): Promise<Opened> {
  const { body, status } = await stage.server.call('POST', '/keys', { name: 'limited', scopes, ...limits })
  expect(status).toBe(201)
  const { page } = await openTab(browser, stage.server.url, { key: body.key, hash })
  const refused: string[] = []
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url())
  })
  return { page, refused }
}

const namesOf = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((fields) => fields.map((field) => field.getAttribute('name')))

async function start(page: Page): Promise<void> {
  await page.fill('[name=message]', 'hello')
  await page.click('button:has-text("Start")')
  await page.waitForSelector('.said:has-text("Hello there.")')
}

test('a key of a user starts agents without choosing a directory, and says whose it is', async () => {
  const { page, refused } = await openAs({ user_id: USER }, '#/new')
  await page.waitForSelector('[name=permission_mode]')
  expect(await page.locator('[name=workdir]').count()).toBe(0)
  await start(page)
  await page.locator('summary').first().click()
  await page.click('text=Fork from here')
  await page.waitForSelector('.notice')
  await goTo(page, '#/conversations')
  await expect.poll(() => page.locator('.summary').count()).toBe(2)
  await goTo(page, '#/settings')
  await page.waitForSelector('text=You are logged in with the key limited: read, write, approve, files.')
  expect(refused).toEqual([])
  await page.context().close()
})

test('a key of a profile starts agents with it, decides without rules, and changes what a profile leaves open', async () => {
  const { page, refused } = await openAs({ profiles: [PROFILE] }, '#/new')
  await expect.poll(() => namesOf(page, 'main select, main input')).toEqual(['profile'])
  await start(page)
  await page.fill('.composer textarea', 'permission')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('[data-request] button.primary:enabled')
  expect(await page.locator('[data-request] button').allInnerTexts()).toEqual([
    expect.stringMatching(/^Allow/),
    expect.stringMatching(/^Deny/),
  ])
  await page.click('[data-request] button.primary')
  await page.waitForSelector('.tool:has-text("touch made")')
  await page.click('nav.tabs >> text=Settings')
  await expect.poll(() => namesOf(page, 'form [name]:disabled')).toEqual(['model', 'permission_mode', 'max_budget_usd'])
  await page.fill('[name=title]', 'another title')
  await page.click('text=Save')
  await page.waitForSelector('h1:has-text("another title")')
  expect(refused).toEqual([])
  await page.context().close()
})

test('a key of some conversations has no control that makes another one', async () => {
  const id = await stage.create({ title: 'the only one' })
  await stage.say(id, 'hello')
  const { page, refused } = await openAs({ conversations: [id] }, `#/c/${id}`)
  await page.locator('summary').first().click()
  await page.waitForSelector('text=Copy as curl')
  expect(await page.locator('text=Fork from here').count()).toBe(0)
  expect(await page.locator('nav.places a[href="#/new"]').count()).toBe(0)
  for (const hash of ['#/new', '#/']) {
    await goTo(page, hash)
    await page.waitForSelector('h1:has-text("Inbox")')
    await page.waitForSelector('text=No agent needs you.')
    expect(await page.locator('a[href="#/new"]').count()).toBe(0)
  }
  await page.keyboard.press('Control+k')
  await page.waitForSelector('[role=option]:has-text("Conversations")')
  expect(await page.locator('[role=option]:text-is("New")').count()).toBe(0)
  expect(refused).toEqual([])
  await page.context().close()
})

test('an address of a tab for which the key has no scope shows the chat', async () => {
  const id = await stage.create({ title: 'no files' })
  await stage.say(id, 'hello')
  const { page, refused } = await openAs({}, `#/c/${id}/files`, ['read', 'write'])
  await page.waitForSelector('.said:has-text("Hello there.")')
  for (const tab of ['changes', 'commands']) {
    await goTo(page, `#/c/${id}/${tab}`)
    await page.waitForSelector('.composer')
  }
  expect(refused).toEqual([])
  await page.context().close()
})

test('a key that may not read gets a page that says so', async () => {
  const { body } = await stage.server.call('POST', '/keys', { name: 'writer', scopes: ['write'] })
  const page = await (await newContext(browser)).newPage()
  const refused: string[] = []
  page.on('response', (response) => {
    if (response.status() >= 400) refused.push(response.url())
  })
  await page.goto(`${stage.server.url}/ui/`)
  await page.fill('[name=password]', body.key)
  await page.click('button[type=submit]')
  await page.waitForSelector('[role=alert]:has-text("may not read")')
  await page.click('text=Log out')
  await page.waitForSelector('[name=password]')
  expect(refused).toEqual([])
  await page.context().close()
})
