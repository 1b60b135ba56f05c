/** The dashboard in a real browser, against a real server and a scripted model. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'
import { accessibilityFaults, goTo, openTab, openTabByForm } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'decide', turns: [bash('touch made'), { text: 'It is made.' }] },
    { when: 'code', turns: [{ text: '```ts\nconst a = `<b>${1}`\n```\n\n```none\nconst b\n```' }] },
    { when: 'long', turns: [bash('seq 100000 104500; exit 1'), { text: 'It is long.' }] },
    { when: 'hello', turns: [{ text: 'Hello **there**.' }] },
    { when: 'fail', turns: [bash('echo broken; exit 3'), { text: 'It failed.' }] },
  ]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

const post = async (id: string, message: string) => {
  const { status } = await stage.server.call('POST', `/conversations/${id}/messages`, { message, run: true })
  expect(status).toBe(202)
}

describe('a person', () => {
  test('sees what waits, decides it by key, and the agent continues', async () => {
    const id = await stage.create({ title: 'decides', permission_mode: 'default' })
    const { page, misdeeds } = await openTab(browser, stage.server.url)
    await page.waitForSelector('text=No agent needs you.')
    await post(id, 'decide')
    await page.waitForSelector('[data-request] pre:has-text("touch made")')
    expect(await page.title()).toContain('(1)')
    // The buttons are for what has been on the screen for a moment.
    await page.waitForSelector('[data-request] button[data-key=a]:enabled')
    await page.keyboard.press('a')
    expect((await stage.server.call('GET', `/conversations/${id}`)).body.status).toBe('waiting_for_confirmation')
    await page.keyboard.press('n')
    // A card that has just moved is not decided: a person presses again.
    await until('a decision', async () => {
      await page.keyboard.press('a')
      return await page.locator('text=No agent needs you.').isVisible()
    })
    await goTo(page, `#/c/${id}`)
    await page.waitForSelector('.said:has-text("It is made.")')
    await page.waitForSelector('text=Answered by You.')
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('sees a request that was opened while the page had read the list and no connection yet', async () => {
    const { page } = await openTab(browser, stage.server.url)
    const asked = Promise.withResolvers<void>()
    await page.routeWebSocket(/firehose/, async (socket) => {
      await asked.promise
      socket.connectToServer()
    })
    await page.reload()
    await page.waitForSelector('text=No agent needs you.')
    const id = await stage.create({ title: 'early', permission_mode: 'default' })
    await post(id, 'decide')
    await until('the request', async () => (await stage.server.call('GET', '/requests')).body.items.length === 1)
    asked.resolve()
    await page.waitForSelector('[data-request] pre:has-text("touch made")')
    await page.context().close()
    expect((await stage.server.call('DELETE', `/conversations/${id}`)).status).toBe(204)
  })

  test('starts an agent and follows it without a mouse', async () => {
    const { page, misdeeds } = await openTab(browser, stage.server.url)
    // The second key belongs to the first one for a moment only.
    await until('the form', async () => {
      await page.keyboard.press('g')
      await page.keyboard.press('n')
      return await page.locator('textarea[name=message]').isVisible()
    })
    await page.fill('input[name=model]', 'scripted')
    await page.fill('textarea[name=message]', 'hello')
    await page.keyboard.press('Control+Enter')
    // The server has no model of its own: it says what to do.
    await page.waitForSelector('.said.user, [role=alert]')
    await page.keyboard.press('Control+k')
    await page.waitForSelector('dialog[open]')
    await page.keyboard.type('conversations')
    await page.keyboard.press('Enter')
    await page.waitForSelector('h1:has-text("Conversations")')
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('reads a long output only when it wants to see it', async () => {
    const id = await stage.create({ title: 'long' })
    await stage.say(id, 'long')
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
    const rest = page.locator('button:has-text("/output/stdout")')
    await rest.waitFor()
    expect(await page.locator('pre:has-text("104499")').count()).toBe(0)
    await rest.click()
    await page.locator('pre[aria-label="/output/stdout"] + button').click()
    await page.waitForSelector('pre:has-text("104499")')
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('finds what was said, in the list and in the palette, and goes to the event', async () => {
    const id = await stage.create({ title: 'found' })
    await post(id, 'hello, where are the <b>zebras</b>?')
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/conversations' })
    // As of a server that has much to read before it can answer.
    const nothing = { items: [], next_page_id: null, is_complete: false }
    await page.route('**/search?*', (route) => route.fulfill({ json: nothing }), { times: 1 })
    await page.fill('[data-search]', 'zebras where')
    const found = page.locator('[data-found] a', { hasText: '<b>zebras</b>' })
    await found.waitFor()
    expect(await found.locator('mark').allTextContents()).toEqual(['where', 'zebras'])
    expect(await accessibilityFaults(page)).toEqual([])
    await found.click()
    await page.waitForSelector('.said:has-text("zebras")')
    expect(await page.evaluate('location.hash')).toMatch(new RegExp(`^#/c/${id}[?]seq=\\d+$`))
    await goTo(page, '#/')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('zebras')
    await page.waitForSelector('[role=option]:has-text("found: hello")')
    await page.click('[role=option]:has-text("found: hello")')
    await page.waitForSelector('.said:has-text("zebras")')
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('writes a message and sees the answer, and a call that failed is open', async () => {
    const id = await stage.create({ title: 'chat' })
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
    await page.fill('.composer textarea', 'hello')
    await page.click('.composer button')
    await page.waitForSelector('.said strong:has-text("there")')
    await page.fill('.composer textarea', 'fail')
    await page.click('.composer button')
    await page.waitForSelector('.tool.failed pre:has-text("broken")')
    await page.fill('.composer textarea', 'code')
    await page.click('.composer button')
    await page.waitForSelector('.code .code-keyword:text-is("const")')
    expect(await page.locator('.markdown pre.code').allTextContents()).toEqual(['const a = `<b>${1}`', 'const b'])
    expect(await page.locator('.code-keyword').count()).toBe(1)
    expect(misdeeds).toEqual([])
    await page.context().close()
  })

  test('changes the title of a conversation and nothing else of it', async () => {
    const id = await stage.create({ title: 'before', permission_mode: 'callback' })
    const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}/settings` })
    await page.fill('input[name=title]', 'after')
    await page.click('text=Save')
    await page.waitForSelector('h1:has-text("after")')
    const { items } = (await stage.server.call('GET', `/conversations/${id}/events?types=ConfigUpdate`)).body
    expect(items.map(({ changes }: { changes: object }) => changes)).toEqual([{ title: 'after' }])
    await page.context().close()
  })

  test('with a key that may only read sees no control that would be refused', async () => {
    const id = await stage.create({ title: 'read only', permission_mode: 'default' })
    await post(id, 'decide')
    const { body } = await stage.server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
    const { page } = await openTab(browser, stage.server.url, { key: body.key, hash: `#/c/${id}` })
    await page.waitForSelector('[data-request]')
    expect(await page.locator('.composer, [data-request] button[data-key], nav.places >> text=New').count()).toBe(0)
    await page.context().close()
  })
})

test('a login outlives the tab and a reload, and the page keeps nothing that works alone', async () => {
  const { page } = await openTabByForm(browser, stage.server.url)
  await page.reload()
  await page.waitForSelector('nav.places')
  const kept = await page.evaluate<string>(`JSON.stringify({ ...localStorage })`)
  expect(kept).not.toContain(KEY)
  const [cookie, ...others] = await page.context().cookies()
  expect(others).toEqual([])
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
  expect(kept).not.toContain(cookie!.value)
  const { login } = JSON.parse(kept) as { login: string }
  const alone = await stage.server.call('GET', '/me', undefined, { authorization: '', 'x-login': login })
  expect(alone.status).toBe(401)
  await goTo(page, '#/settings')
  await page.click('text=Log out')
  await page.waitForSelector('[name=password]')
  await page.reload()
  await page.waitForSelector('[name=password]')
  await page.context().close()
})

test('a page whose server was killed says so, and misses and doubles nothing afterwards', async () => {
  const id = await stage.create({ title: 'outage' })
  await stage.say(id, 'hello')
  const { page } = await openTab(browser, stage.server.url, { hash: `#/c/${id}` })
  await page.waitForSelector('.end')
  await page.fill('.composer textarea', 'a draft')
  await stage.server.stop('SIGKILL')
  await page.waitForSelector('.lost')
  await stage.server.restart()
  await stage.say(id, 'hello')
  await expect.poll(() => page.locator('.end').count()).toBe(2)
  await page.waitForSelector('.lost', { state: 'detached' })
  expect(await page.locator('.said.user').count()).toBe(2)
  expect(await page.inputValue('.composer textarea')).toBe('a draft')
  await page.context().close()
})

describe('every screen keeps to WCAG 2.2 AA', () => {
  test.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 360],
    ['dark', 360],
  ] as const)('%s, %i px wide', async (colorScheme, width) => {
    const id = await stage.create({ title: 'accessible', permission_mode: 'default' })
    await post(id, 'decide')
    const { page } = await openTab(browser, stage.server.url)
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const screens = [
      '',
      'conversations',
      'new',
      'costs',
      'webhooks',
      'server',
      ...['', '/changes', '/files', '/commands', '/timeline', '/settings'].map((part) => `c/${id}${part}`),
      'settings',
    ]
    const faults: string[] = []
    const add = async (name: string) => {
      faults.push(...(await accessibilityFaults(page)).map((fault) => `${name}: ${fault}`))
    }
    for (const screen of screens) {
      await goTo(page, `#/${screen}`)
      await page.waitForSelector('h1')
      await page.waitForSelector('main >> text=Loading …', { state: 'detached' })
      await add(screen)
    }
    for (const [key, name] of [
      ['?', 'keys'],
      ['Control+k', 'palette'],
    ] as const) {
      await page.keyboard.press(key)
      await page.waitForSelector('dialog[open]')
      await add(name)
      await page.keyboard.press('Escape')
      await page.waitForSelector('dialog[open]', { state: 'detached' })
    }
    await page.click('text=Log out')
    await page.waitForSelector('[name=password]')
    await add('login')
    expect(faults).toEqual([])
    await page.context().close()
  })
})
