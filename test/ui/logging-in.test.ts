/** Logins in a real browser: whose they are, and what is left of them. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
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

type Key = { readonly id: string; readonly key: string }

const makeKey = async (fields: object): Promise<Key> =>
  (await stage.server.call('POST', '/keys', { name: 'another', scopes: ['read', 'write'], ...fields })).body

const loginsOf = async ({ id }: Key): Promise<number> =>
  (await stage.server.call('GET', '/logins')).body.items.filter((login: { key_id?: string }) => login.key_id === id)
    .length

async function logIn(page: Page, key: string): Promise<void> {
  await page.fill('[name=password]', key)
  await page.click('button[type=submit]')
  await page.waitForSelector('nav.places')
}

test('the link of somebody else does not replace a login that works, and replaces one that has ended', async () => {
  const [mine, theirs] = [await makeKey({}), await makeKey({ user_id: 'user-17' })]
  const makeCode = async (): Promise<string> =>
    (await stage.server.call('POST', '/login-codes', undefined, { authorization: `Bearer ${theirs.key}` })).body.code
  const { page } = await openTabByForm(browser, stage.server.url, { key: mine.key })
  await page.goto('about:blank')
  await page.goto(`${stage.server.url}/ui/#login=${await makeCode()}`)
  await page.waitForSelector('nav.places')
  expect(page.url()).not.toContain('asc_')
  expect([await loginsOf(mine), await loginsOf(theirs)]).toEqual([1, 0])
  await stage.server.call('DELETE', `/keys/${mine.id}`)
  await page.waitForSelector('[name=password]')
  await page.goto('about:blank')
  await page.goto(`${stage.server.url}/ui/#login=${await makeCode()}`)
  await page.waitForSelector('nav.places')
  expect(await loginsOf(theirs)).toBe(1)
  await page.context().close()
})

test('a link with a code logs in the tab that shows the form, and has no place in its address', async () => {
  const { page } = await openTabByForm(browser, stage.server.url)
  await goTo(page, '#/settings')
  await page.click('text=Log out')
  await page.waitForSelector('[name=password]')
  const { code } = (await stage.server.call('POST', '/login-codes')).body
  await goTo(page, `#login=${code}`)
  await page.waitForSelector('nav.places')
  expect(page.url()).not.toContain('asc_')
  await page.context().close()
})

test('a page whose key is revoked shows the form, and the next login sees nothing of the one before', async () => {
  const [admin, limited] = [await makeKey({ scopes: ['admin'] }), await makeKey({ user_id: 'user-18' })]
  const id = await stage.create({ title: 'confidential', permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'go', run: true })
  const { page } = await openTabByForm(browser, stage.server.url, { key: admin.key })
  await page.waitForSelector('[data-request]')
  await stage.server.call('DELETE', `/keys/${admin.id}`)
  await page.waitForSelector('form:has([name=password]) >> text=Your login has ended')
  // The list of the next login never comes.
  await page.route('**/requests?*', () => {})
  await logIn(page, limited.key)
  await page.waitForSelector('h1:has-text("Inbox")')
  expect(await page.locator('[data-request]').count()).toBe(0)
  expect(await page.title()).not.toContain('(')
  await page.context().close()
})

test('a tab whose login another tab has replaced does not end the new one', async () => {
  const { page: old } = await openTabByForm(browser, stage.server.url, { key: (await makeKey({})).key })
  const page = await old.context().newPage()
  await page.goto(`${stage.server.url}/ui/`)
  await page.waitForSelector('nav.places')
  await page.evaluate(`localStorage.removeItem('login')`)
  await page.reload()
  await logIn(page, KEY)
  // It may have noticed by itself already.
  await old.evaluate(`location.hash = '#/conversations'`)
  await old.waitForSelector('[name=password]')
  await page.reload()
  await page.waitForSelector('nav.places')
  expect(await page.evaluate(`localStorage.getItem('login')`)).toMatch(/^asv_/)
  await old.context().close()
})

test('drafts are continued by who wrote them after a login has ended, and somebody else does not see them', async () => {
  const [mine, theirs] = [await makeKey({}), await makeKey({})]
  const id = await stage.create({ title: 'drafts' })
  const { page } = await openTabByForm(browser, stage.server.url, { key: mine.key, hash: `#/c/${id}` })
  const draft = page.locator('.composer textarea')
  await draft.fill('my draft')
  const endLogin = async () => {
    const login = (await stage.server.call('GET', '/logins')).body.items.at(-1)
    await stage.server.call('DELETE', `/logins/${login.id}`)
    await page.waitForSelector('[name=password]')
  }
  await endLogin()
  await logIn(page, mine.key)
  expect(await draft.inputValue()).toBe('my draft')
  await endLogin()
  await logIn(page, theirs.key)
  expect(await draft.inputValue()).toBe('')
  await draft.fill('their draft')
  await endLogin()
  await logIn(page, mine.key)
  expect(await draft.inputValue()).toBe('')
  await page.context().close()
})

test('a tab whose login another tab has ended or replaced shows nothing of it any more', async () => {
  const { page: old } = await openTabByForm(browser, stage.server.url)
  // The server tells it nothing.
  await old.route('**/stream-tickets', () => {})
  await old.reload()
  await old.waitForSelector('nav.places')
  const page = await old.context().newPage()
  await page.goto(`${stage.server.url}/ui/#/settings`)
  await page.click('text=Log out')
  await old.waitForSelector('[name=password]')
  expect(await old.locator('nav.places').count()).toBe(0)
  await old.context().close()
})

test('a page that is loaded again does not wait for whose its login is, and follows what the server says about it', async () => {
  const { key, id } = await makeKey({})
  await stage.create({ title: 'at once' })
  const { page } = await openTabByForm(browser, stage.server.url, { key, hash: '#/conversations' })
  const isAnswered = Promise.withResolvers<void>()
  await page.route('**/me', async (route) => {
    await isAnswered.promise
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...(await response.json()), scopes: ['read'] } })
  })
  await page.reload()
  await page.waitForSelector('.summary:has-text("at once")')
  expect(await page.locator('nav.places >> text=New').count()).toBe(1)
  isAnswered.resolve()
  await page.waitForSelector('nav.places >> text=New', { state: 'detached' })
  await page.unroute('**/me')
  await page.goto('about:blank')
  await stage.server.call('DELETE', `/keys/${id}`)
  await page.goto(`${stage.server.url}/ui/#/conversations`)
  await page.waitForSelector('[name=password]')
  expect(await page.evaluate(`localStorage.getItem('me')`)).toBeNull()
  await page.context().close()
})
