/** What happens to a page that is open all day: a server that is away at its start, a wrong clock, clicks that were not meant. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'
import { goTo, openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const DAY_MS = 86_400_000

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'hello', turns: [{ text: 'Hello there.' }] },
    { when: 'work', turns: [bash('sleep 600'), { text: 'Done.' }] },
  ]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/** Returns the paths of requests that change something. */
function watchChanges({ page }: Awaited<ReturnType<typeof openTab>>): string[] {
  const paths: string[] = []
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (request.method() !== 'GET' && pathname !== '/stream-tickets') paths.push(pathname)
  })
  return paths
}

test('a page whose server is away says so instead of asking for a key, and continues when it is back', async () => {
  const { page } = await openTab(browser, stage.server.url)
  await page.route('**/me', (route) => route.fulfill({ status: 502, body: '<html>Bad gateway</html>' }))
  await page.reload()
  await page.waitForSelector('main .fault:has-text("No connection since")')
  expect(await page.locator('[name=password]').count()).toBe(0)
  await page.unroute('**/me')
  await page.waitForSelector('nav.places')
  await page.waitForSelector('.lost', { state: 'detached' })
  // A page that knows nothing about its login says that it waits.
  await page.evaluate(`localStorage.removeItem('me')`)
  await page.route('**/me', () => {})
  await page.reload()
  await page.waitForSelector('main .loading')
  await page.context().close()
})

test('a page says that a suspended server does not answer, and that ends as soon as it continues', async () => {
  const id = await stage.create({ title: 'suspended' })
  const { page } = await openTab(browser, stage.server.url)
  // The code of the first screen of a conversation may be loaded by now, or is asked for as its requests are.
  for (const screen of [`#/c/${id}/files`, '#/costs']) {
    process.kill(stage.server.pid, 'SIGSTOP')
    try {
      await goTo(page, screen)
      await page.waitForSelector('.lost:has-text("No connection since")')
    } finally {
      process.kill(stage.server.pid, 'SIGCONT')
    }
    await page.waitForSelector('.lost', { state: 'detached' })
    await page.waitForSelector('.loading', { state: 'detached' })
    expect(await page.locator('.fault').count()).toBe(0)
  }
  await page.context().close()
})

test('an answer that takes long says nothing about the server, unless a proxy says that it is not there', async () => {
  const id = await stage.create({ title: 'slow' })
  const { page } = await openTab(browser, stage.server.url)
  await page.route(`**/conversations/${id}/files**`, () => {})
  const statuses = [404, 502]
  await page.route('**/alive', (route) => route.fulfill({ status: statuses.shift() ?? 200 }))
  const signs: number[] = []
  page.on('response', (response) => void (response.url().endsWith('/alive') && signs.push(response.status())))
  await goTo(page, `#/c/${id}/files`)
  await expect.poll(() => signs).toEqual([404])
  expect(await page.locator('.lost').count()).toBe(0)
  await goTo(page, '#/conversations')
  await goTo(page, `#/c/${id}/files`)
  await page.waitForSelector('.lost:has-text("No connection since")')
  await page.waitForSelector('.lost', { state: 'detached' })
  expect(signs).toEqual([404, 502, 200])
  await page.context().close()
})

test('a browser whose clock is a day ahead, or behind, shows times as the server knows them', async () => {
  const id = await stage.create({ title: 'times', permission_mode: 'bypass' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'work', run: true })
  for (const days of [1, -1]) {
    const { page } = await openTab(browser, stage.server.url)
    await page.clock.install({ time: Date.now() + days * DAY_MS })
    await page.reload()
    await page.waitForSelector('.summary:has-text("times")')
    await expect.poll(() => page.locator('.summary time').first().textContent()).toMatch(/^\d+ (?:s|min)$/)
    await goTo(page, `#/c/${id}`)
    await page.waitForSelector('.tool:has-text("sleep 600")')
    expect(await page.locator('.meta').textContent()).not.toMatch(/ h /)
    await goTo(page, '#/costs')
    await page.selectOption('select', '1')
    await page.waitForSelector('.loading', { state: 'detached' })
    expect(await page.locator('.fault').count()).toBe(0)
    await page.context().close()
  }
  await stage.server.call('POST', `/conversations/${id}/pause`, { interrupt: true })
})

test('a page of a server that was upgraded meanwhile offers the new one, and keeps what is being written', async () => {
  const id = await stage.create({ title: 'upgraded' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.fill('.composer textarea', 'a draft')
  const loseConnection = async () => {
    await page.context().setOffline(true)
    await page.waitForSelector('.lost:has-text("No connection")')
    const looking = page.waitForResponse('**/ui/')
    await page.context().setOffline(false)
    await (await looking).finished()
    await page.waitForSelector('.lost:has-text("No connection")', { state: 'detached' })
  }
  await loseConnection()
  expect(await page.locator('.lost').count()).toBe(0)
  await page.route('**/ui/', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, body: (await response.text()).replaceAll(/main-[\w-]+/g, 'main-00000000') })
  })
  await loseConnection()
  await page.waitForSelector('.lost:has-text("new version")')
  await page.unroute('**/ui/')
  await page.click('text=Load it')
  await page.waitForSelector('.lost', { state: 'detached' })
  expect(await page.inputValue('.composer textarea')).toBe('a draft')
  await page.context().close()
})

test('an address without a conversation says so', async () => {
  const { page } = await openTab(browser, stage.server.url)
  for (const id of ['nothing', '..%2F..%2Finfo', '%00', 'x'.repeat(5000)]) {
    await goTo(page, `#/c/${id}`)
    await page.waitForSelector('a:has-text("All conversations")')
    expect(await page.locator('nav.tabs').count()).toBe(0)
  }
  await page.context().close()
})

test('a double click starts one thing', async () => {
  const id = await stage.create({ title: 'clicks' })
  await stage.say(id, 'hello')
  const tab = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const { page } = tab
  await page.waitForSelector('.end')
  const changes = watchChanges(tab)
  await page.locator('summary').first().click()
  await page.locator('text=Fork from here').first().dblclick()
  await page.waitForSelector('.notice')
  await goTo(page, '#/server')
  // What is still loading moves the buttons below it, away from a click that has begun.
  await page.waitForSelector('.sums')
  await expect.poll(() => page.locator('.loading').count()).toBe(0)
  await page.fill('[name=name]', 'one')
  await page.locator('text=Make a key').dblclick()
  await page.waitForSelector('code.secret')
  await page.locator('text=Pause all agents').dblclick()
  await page.waitForSelector('.notice:has-text("paused")')
  expect(changes).toEqual([`/conversations/${id}/fork`, '/keys'])
  expect((await stage.server.call('GET', '/keys')).body.items).toHaveLength(1)
  await page.context().close()
})

test('a page shows the last status, whichever of its requests is answered last', async () => {
  const id = await stage.create({ title: 'answered late', permission_mode: 'bypass' })
  const path = `/conversations/${id}`
  await stage.server.call('POST', `${path}/messages`, { message: 'work', run: true })
  const { page } = await openTab(browser, stage.server.url)
  // The events are read when the status has changed, after the conversation was read.
  const isPaused = Promise.withResolvers<void>()
  const first = page.waitForResponse((response) => new URL(response.url()).pathname === path)
  await page.route(`**${path}/events?*`, async (route) => {
    await isPaused.promise
    await route.continue()
  })
  await goTo(page, `#/c/${id}`)
  expect(await (await first).json()).toMatchObject({ status: 'running' })
  await stage.server.call('POST', `${path}/pause`, { interrupt: true })
  await until('the pause', async () => (await stage.server.call('GET', path)).body.status === 'paused')
  isPaused.resolve()
  await page.waitForSelector('button:has-text("Continue")')

  // A later change asks again before the first answer has arrived.
  const held = Promise.withResolvers<void>()
  const isHeld = Promise.withResolvers<void>()
  let isFirst = true
  await page.route(`**${path}`, async (route) => {
    const isOld = isFirst && route.request().method() === 'GET'
    if (isOld) isFirst = false
    const response = await route.fetch()
    if (isOld) {
      isHeld.resolve()
      await held.promise
    }
    await route.fulfill({ response })
  })
  await stage.server.call('PUT', `${path}/config`, { title: 'named once' })
  await isHeld.promise
  await stage.server.call('PUT', `${path}/config`, { title: 'named twice' })
  await page.waitForSelector('h1:has-text("named twice")')
  const old = page.waitForResponse((response) => new URL(response.url()).pathname === path)
  held.resolve()
  await (await old).finished()
  await goTo(page, `#/c/${id}/settings`)
  expect(await page.inputValue('[name=title]')).toBe('named twice')
  expect(await page.locator('h1').innerText()).toBe('named twice')
  await page.context().close()
})

test('a message that is being sent cannot be sent again from another screen', async () => {
  const id = await stage.create({ title: 'sent slowly' })
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  const isSent = Promise.withResolvers<void>()
  await page.route('**/messages', async (route) => {
    await isSent.promise
    await route.continue()
  })
  await page.fill('.composer textarea', 'hello')
  await page.click('.composer button')
  for (const between of [`#/c/${id}/files`, '#/conversations']) {
    await goTo(page, between)
    await page.waitForSelector('.composer', { state: 'detached' })
    await goTo(page, `#/c/${id}`)
    await page.waitForSelector('.composer button:disabled')
    expect(await page.inputValue('.composer textarea')).toBe('hello')
  }
  await page.locator('.composer textarea').pressSequentially(' and more')
  isSent.resolve()
  await page.waitForSelector('.said:has-text("Hello there.")')
  expect(await page.inputValue('.composer textarea')).toBe(' and more')
  await page.reload()
  await page.waitForSelector('.said:has-text("Hello there.")')
  expect(await page.inputValue('.composer textarea')).toBe(' and more')
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(1)
  // Another tab continues it.
  const other = await page.context().newPage()
  await other.goto(`${stage.server.url}/ui/#/c/${id}`)
  await other.locator('.composer textarea').fill('more')
  await goTo(page, '#/conversations')
  await page.waitForSelector('.composer', { state: 'detached' })
  await goTo(page, `#/c/${id}`)
  await expect.poll(() => page.inputValue('.composer textarea')).toBe('more')
  await page.context().close()
})

test('Escape in a field is meant for the field, and elsewhere it pauses the agent', async () => {
  const id = await stage.create({ title: 'escape', permission_mode: 'bypass' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'work', run: true })
  const tab = await openTab(browser, stage.server.url, { hash: `#/c/${id}/files` })
  const { page } = tab
  const changes = watchChanges(tab)
  await page.waitForSelector('button:has-text("Pause")')
  await page.fill('main [type=search]', 'words')
  await page.keyboard.press('Escape')
  expect(await page.inputValue('main [type=search]')).toBe('')
  expect(changes).toEqual([])
  await page.click('nav.tabs >> text=Chat')
  // An open menu is closed, and takes the place of another one.
  await page.waitForSelector('.tool:has-text("sleep 600")')
  await page.click('.tool .line')
  await page.locator('.more summary').first().click()
  await page.locator('.more summary').last().click()
  await expect.poll(() => page.locator('.more[open]').count()).toBe(1)
  await page.keyboard.press('Escape')
  await expect.poll(() => page.locator('.more[open]').count()).toBe(0)
  expect(await page.evaluate(`document.activeElement.matches('.more summary')`)).toBe(true)
  expect(changes).toEqual([])
  await page.focus('.composer textarea')
  await page.keyboard.press('Escape')
  await page.waitForSelector('button:has-text("Continue")')
  expect(changes).toEqual([`/conversations/${id}/pause`])
  await page.context().close()
})
