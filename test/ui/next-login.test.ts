/** Two people share a browser: who logs in next meets nothing that the one before has seen, chosen, written or begun. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTabByForm } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [{ turns: [bash('touch made'), { text: 'Done.' }] }] })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const makeKey = async (fields: object): Promise<string> =>
  (await stage.server.call('POST', '/keys', { name: 'one of two', scopes: ['read', 'write'], ...fields })).body.key

async function ask(title: string): Promise<string> {
  const id = await stage.create({ title, permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'go', run: true })
  return id
}

/** Ends the login at the server: the browser is not asked to forget anything. */
async function endLogin(page: Page): Promise<void> {
  const { items } = (await stage.server.call('GET', '/logins')).body
  for (const { id } of items) await stage.server.call('DELETE', `/logins/${id}`)
  await page.waitForSelector('[name=password]')
}

async function logIn(page: Page, key: string): Promise<void> {
  await page.fill('[name=password]', key)
  await page.click('button[type=submit]')
  await page.waitForSelector('nav.places')
}

const stored = (page: Page) => page.evaluate<Record<string, string>>(`({ ...localStorage })`)

test.each(['was left', 'was ended'])(
  'what somebody has asked for is not shown in the next login after one that %s',
  async (how) => {
    const [mine, theirs] = [await makeKey({}), await makeKey({ user_id: 'user-17' })]
    const { page, misdeeds } = await openTabByForm(browser, stage.server.url, { key: mine })
    await page.waitForSelector('text=No agent needs you.')
    // The list of requests, and that of what runs, come late: in the next login.
    const isNext = Promise.withResolvers<void>()
    const held: Promise<unknown>[] = []
    const hold = (pattern: string) =>
      page.route(pattern, async (route) => {
        const response = await route.fetch().catch(() => undefined)
        if (!response) return
        held.push(isNext.promise.then(() => route.fulfill({ response }).catch(() => {})))
      })
    await hold('**/requests?*')
    const id = await ask('confidential')
    await expect.poll(() => held.length).toBeGreaterThan(0)
    await page.unroute('**/requests?*')
    if (how === 'was left') {
      await goTo(page, '#/settings')
      await page.click('text=Log out')
      await goTo(page, '#/')
    } else await endLogin(page)
    await page.waitForSelector('[name=password]')
    expect(await page.title()).toBe('agent-server')
    await page.route('**/requests?*', () => {})
    await logIn(page, theirs)
    await page.waitForSelector('h1:has-text("Inbox")')
    isNext.resolve()
    await Promise.all(held)
    await page.evaluate(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
    expect(await page.locator('[data-request]').count()).toBe(0)
    expect(await page.title()).toBe('agent-server')
    expect(misdeeds).toEqual([])
    await stage.server.call('DELETE', `/conversations/${id}`)
    await page.context().close()
  },
)

test('what somebody has chosen, muted, written and done is not there for the next one, who may not know it', async () => {
  const [mine, theirs] = [await makeKey({}), await makeKey({})]
  const id = await stage.create({ title: 'mine' })
  const { page } = await openTabByForm(browser, stage.server.url, { key: mine, hash: '#/new' })
  await page.fill('[name=model]', 'my-model')
  await page.fill('[name=workdir]', 'mine')
  await page.selectOption('[name=permission_mode]', 'plan')
  await page.fill('[name=message]', 'go')
  await page.click('button:has-text("Start")')
  await page.waitForSelector('[role=alert], .conversation')
  await goTo(page, `#/c/${id}`)
  await page.fill('.composer textarea', 'my draft')
  await goTo(page, `#/c/${id}/settings`)
  await page.getByLabel('Do not notify me').check()
  await goTo(page, '#/settings')
  await page.getByLabel('Look').selectOption('dark')
  await page.getByLabel('without content').check()
  await goTo(page, '#/conversations')
  await page.getByLabel('mine', { exact: true }).check()
  await page.click('button:has-text("Archive"):not([aria-pressed])')
  await page.waitForSelector('.notice:has-text("archived")')
  await page.keyboard.press('?')
  await page.waitForSelector('dialog[open]')
  await endLogin(page)
  await logIn(page, theirs)
  const { me, login, ...rest } = await stored(page)
  expect(Object.keys(rest).toSorted()).toEqual(['language', 'look', 'single-keys', 'writer'])
  expect(JSON.parse(me!).value).toBe(login)
  expect(await page.locator('.notice, dialog[open]').count()).toBe(0)
  await goTo(page, '#/new')
  await page.waitForSelector('[name=workdir]')
  expect(await page.inputValue('[name=workdir]')).toBe('')
  expect(await page.inputValue('[name=model]')).toBe('')
  expect(await page.inputValue('[name=permission_mode]')).toBe('default')
  await goTo(page, `#/c/${id}/settings`)
  expect(await page.getByLabel('Do not notify me').isChecked()).toBe(false)
  await goTo(page, '#/settings')
  // This belongs to the browser.
  expect(await page.getAttribute('html', 'data-look')).toBe('dark')
  expect(await page.getByLabel('without content').isChecked()).toBe(false)
  await page.context().close()
})

test('what somebody has chosen is there again when they log in again, also after a reload', async () => {
  const mine = await makeKey({})
  const id = await stage.create({ title: 'again' })
  const { page } = await openTabByForm(browser, stage.server.url, { key: mine, hash: `#/c/${id}/settings` })
  await page.getByLabel('Do not notify me').check()
  for (const isReloaded of [false, true]) {
    await endLogin(page)
    if (isReloaded) await page.reload()
    await logIn(page, mine)
    await page.waitForSelector('label:has-text("Do not notify me")')
    expect(await page.getByLabel('Do not notify me').isChecked()).toBe(true)
  }
  await page.context().close()
})

test('what belongs to who logs out is gone, and the language, the look and other servers of the host keep theirs', async () => {
  const id = await stage.create({ title: 'left' })
  const { page } = await openTabByForm(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.fill('.composer textarea', 'a draft')
  await goTo(page, `#/c/${id}/settings`)
  await page.getByLabel('Do not notify me').check()
  await goTo(page, '#/settings')
  await page.getByLabel('Look').selectOption('dark')
  await page.getByLabel('Language').selectOption('de')
  await page.evaluate(`localStorage.setItem('login /elsewhere/', 'of another server')`)
  const ended = page.waitForResponse((response) => response.request().method() === 'DELETE')
  await page.click('text=Abmelden')
  expect((await ended).status()).toBe(204)
  await page.waitForSelector('[name=password]')
  expect(await stored(page)).toEqual({
    language: 'de',
    look: 'dark',
    'single-keys': 'on',
    writer: expect.any(String),
    'login /elsewhere/': 'of another server',
  })
  await page.reload()
  await page.waitForSelector('button:has-text("Anmelden")')
  await page.context().close()
})

test('a page that is loaded for somebody else has not read the values of the one before', async () => {
  const [mine, theirs] = [await makeKey({}), await makeKey({})]
  const id = await stage.create({ title: 'muted by one' })
  const { page } = await openTabByForm(browser, stage.server.url, { key: mine, hash: `#/c/${id}/settings` })
  await page.getByLabel('Do not notify me').check()
  await endLogin(page)
  await page.reload()
  await logIn(page, theirs)
  await page.waitForSelector('label:has-text("Do not notify me")')
  expect(await page.getByLabel('Do not notify me').isChecked()).toBe(false)
  await page.context().close()
})

test('a message that is on the way while somebody else logs in leaves no draft for them', async () => {
  const [mine, theirs] = [await makeKey({}), await makeKey({})]
  const id = await stage.create({ title: 'late' })
  const { page: old } = await openTabByForm(browser, stage.server.url, { key: mine, hash: `#/c/${id}` })
  const isSent = Promise.withResolvers<void>()
  const isNext = Promise.withResolvers<void>()
  await old.route('**/messages', async (route) => {
    isSent.resolve()
    await isNext.promise
    await route.fulfill({ json: {} })
  })
  await old.fill('.composer textarea', 'sent')
  await old.keyboard.press('Control+Enter')
  await isSent.promise
  await old.fill('.composer textarea', 'sent, and more')
  const page = await old.context().newPage()
  await page.goto(`${stage.server.url}/ui/`)
  await page.waitForSelector('nav.places')
  await page.evaluate(`localStorage.removeItem('login')`)
  await page.reload()
  await logIn(page, theirs)
  await old.waitForSelector('[name=password]')
  const answered = old.waitForResponse('**/messages')
  isNext.resolve()
  await answered
  await old.evaluate(`new Promise((done) => setTimeout(done))`)
  expect(Object.keys(await stored(page)).filter((name) => name.startsWith('draft'))).toEqual([])
  await old.context().close()
})
