/** A page that is open all day, with slow answers, failures and other tabs: nothing is lost, stays away, or is out of date. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  stage = await setStage({ replies: [{ turns: [bash('touch made'), { text: 'It is made.' }] }] })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const deleteAll = async (ids: readonly string[]) => {
  for (const id of ids) expect((await stage.server.call('DELETE', `/conversations/${id}`)).status).toBe(204)
}

test('counts that are answered slowly are shown, however often they change meanwhile', async () => {
  const ids = [await stage.create({ title: 'counted 0' })]
  const { page } = await openTab(browser, stage.server.url)
  const isAnswered = Promise.withResolvers<void>()
  const ended: string[] = []
  page.on('requestfailed', (request) => ended.push(request.url()))
  await page.route('**/count?*', async (route) => {
    await isAnswered.promise
    await route.continue()
  })
  const asked = page.waitForRequest('**/count?*')
  await goTo(page, '#/conversations')
  await asked
  // Each of these changes the counts. The page hears of them in this order.
  for (const place of [1, 2, 3]) {
    ids.push(await stage.create({ title: `counted ${place}` }))
    await page.waitForSelector(`.summary:has-text("counted ${place}")`)
  }
  expect(ended.filter((url) => url.includes('/count?'))).toEqual([])
  isAnswered.resolve()
  await page.waitForSelector('.filters:has-text("All 4")')
  await deleteAll(ids)
  await page.waitForSelector('.filters:has-text("All 0")')
  await page.context().close()
})

test('a message that is written in two tabs is the same one in both', async () => {
  const id = await stage.create({ title: 'in two tabs' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const other = await page.context().newPage()
  await other.goto(`${stage.server.url}/ui/#/c/${id}`)
  const [mine, theirs] = [page.locator('.composer textarea'), other.locator('.composer textarea')]
  await theirs.waitFor()
  await mine.fill('a long draft')
  await expect.poll(() => theirs.inputValue()).toBe('a long draft')
  await theirs.fill('a long draft, continued')
  await expect.poll(() => mine.inputValue()).toBe('a long draft, continued')
  await page.context().close()
  await deleteAll([id])
})

test('what is written in one tab while another one sends the beginning of it stays', async () => {
  const id = await stage.create({ title: 'sent from one of two tabs' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const other = await page.context().newPage()
  await other.goto(`${stage.server.url}/ui/#/c/${id}`)
  const isSent = Promise.withResolvers<void>()
  await page.route('**/messages', async (route) => {
    await isSent.promise
    await route.continue()
  })
  const [mine, theirs] = [page.locator('.composer textarea'), other.locator('.composer textarea')]
  await mine.fill('first')
  await expect.poll(() => theirs.inputValue()).toBe('first')
  await page.click('.composer button')
  await page.waitForSelector('.composer button:disabled')
  await theirs.fill('first, and second')
  await expect.poll(() => mine.inputValue()).toBe('first, and second')
  isSent.resolve()
  for (const field of [mine, theirs]) await expect.poll(() => field.inputValue()).toBe(', and second')
  await page.context().close()
  await deleteAll([id])
})

test('a long list has nothing that was deleted while there was no connection', async () => {
  const ids = await Promise.all(Array.from({ length: 130 }, (_, place) => stage.create({ title: `row ${place}` })))
  const { page } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
  const shown = page.locator('main .scroller')
  await page.waitForSelector('.summary')
  /** Scrolls until there are no further rows. */
  const titles = async () => {
    const all = new Set<string>()
    await shown.evaluate((list) => (list.scrollTop = 0))
    for (let isEnd = false; !isEnd;) {
      await page.evaluate(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
      for (const title of await page.locator('.summary strong').allTextContents()) all.add(title)
      isEnd = await shown.evaluate((list) => {
        const before = list.scrollTop
        list.scrollTop += 300
        return list.scrollTop === before
      })
    }
    return all
  }
  await expect.poll(async () => (await titles()).size).toBe(130)
  await page.context().setOffline(true)
  await page.waitForSelector('.lost')
  const gone: string[] = []
  const { items } = (await stage.server.call('GET', '/conversations/summaries?sort=updated_at&limit=200')).body
  for (const place of [20, 125]) {
    gone.push(items[place].title)
    await deleteAll([items[place].id])
  }
  const read = page.waitForResponse('**/conversations/summaries?*')
  await page.context().setOffline(false)
  await (await read).finished()
  await expect.poll(async () => (await titles()).size).toBe(128)
  expect([...(await titles())].filter((title) => gone.includes(title))).toEqual([])
  await page.context().close()
  await deleteAll(ids.filter((id) => ![items[20].id, items[125].id].includes(id)))
})

test('requests that could not be read are there later, without anything that happens', async () => {
  const id = await stage.create({ title: 'read later', permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'go', run: true })
  await expect.poll(async () => (await stage.server.call('GET', '/requests')).body.items.length).toBe(1)
  const { page } = await openTab(browser, stage.server.url, { hash: '#/settings' })
  let isRefused = true
  let refusals = 0
  await page.route('**/requests?*', (route) => {
    if (!isRefused) return route.continue()
    refusals++
    return route.fulfill({ status: 500, json: { code: 'internal_error', detail: 'No.', status: 500 } })
  })
  await page.goto('about:blank')
  await page.goto(`${stage.server.url}/ui/`)
  await page.waitForSelector('h1:has-text("Inbox")')
  await expect.poll(() => refusals).toBeGreaterThan(2)
  await page.waitForSelector('main .loading')
  isRefused = false
  await page.waitForSelector('[data-request]')
  await deleteAll([id])
  await page.context().close()
})

test('a conversation that could not be read again says so until it could', async () => {
  const id = await stage.create({ title: 'before' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.waitForSelector('h1:has-text("before")')
  const rename = (title: string) => stage.server.call('PUT', `/conversations/${id}/config`, { title })
  await page.route(`**/conversations/${id}`, (route) =>
    route.fulfill({ status: 500, json: { code: 'internal_error', detail: 'Not now.', status: 500 } }),
  )
  await rename('meanwhile')
  await page.waitForSelector('.conversation .fault:has-text("Not now.")')
  await page.unroute(`**/conversations/${id}`)
  await rename('after')
  await page.waitForSelector('h1:has-text("after")')
  await page.waitForSelector('.conversation .fault', { state: 'detached' })
  await deleteAll([id])
  await page.context().close()
})

test('Enter in the palette does not open what was found for a former text', async () => {
  const ids = [await stage.create({ title: 'the last one' })]
  const { page } = await openTab(browser, stage.server.url)
  await page.keyboard.press('Control+k')
  await page.waitForSelector('[role=option]:has-text("the last one")')
  const isAnswered = Promise.withResolvers<void>()
  await page.route('**/summaries?*q=*', async (route) => {
    await isAnswered.promise
    await route.continue()
  })
  ids.push(await stage.create({ title: 'deploys' }))
  await page.keyboard.type('deploys')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('location.hash')).not.toContain('c/')
  isAnswered.resolve()
  await page.waitForSelector('[role=option]:has-text("deploys")')
  await page.keyboard.press('Enter')
  await page.waitForSelector('h1:has-text("deploys")')
  await deleteAll(ids)
  await page.context().close()
})

test('a command that is typed while another one runs is not lost', async () => {
  const id = await stage.create({ title: 'commands' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/commands` })
  const field = page.getByRole('textbox', { name: 'Command' })
  await field.fill('while [ ! -e go ]; do sleep 0.05; done; echo gone')
  await page.keyboard.press('Enter')
  await field.fill('echo next')
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector('.composer textarea')
  await goTo(page, `#/c/${id}/commands`)
  expect(await field.inputValue()).toBe('echo next')
  expect((await stage.server.call('PUT', `/conversations/${id}/files/go`, 'go')).status).toBe(201)
  await page.waitForSelector('li:has-text("exit 0")')
  expect(await field.inputValue()).toBe('echo next')
  await deleteAll([id])
  await page.context().close()
})

test('a conversation that is gone does not keep others from being archived with it', async () => {
  const ids: string[] = []
  for (const title of ['first', 'second', 'third']) ids.push(await stage.create({ title }))
  const { page } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
  for (const title of ['first', 'second', 'third']) await page.getByLabel(title, { exact: true }).check()
  await deleteAll([ids[1]!])
  await page.waitForSelector('.summary:has-text("second")', { state: 'detached' })
  await page.click('button:has-text("Archive"):not([aria-pressed])')
  await page.waitForSelector('.notice:has-text("archived")')
  for (const id of [ids[0], ids[2]])
    expect((await stage.server.call('GET', `/conversations/${id}`)).body).toMatchObject({ archived: true })
  await page.context().close()
})
