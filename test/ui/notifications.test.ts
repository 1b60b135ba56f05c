/** Notifications: only when they are switched on, once for each thing that happens, and with no more than they may say. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { goTo, openTab, watchConnection } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

let browser: Browser
let stage: Stage
beforeAll(async () => {
  browser = await openBrowser()
  const replies = [
    { when: 'decide', turns: [bash('touch made'), { text: 'It is made.' }] },
    { when: 'hello', turns: [{ text: 'Hello there.' }] },
    { when: 'fail', turns: [{ status: 400, error: { message: 'No.' } }] },
  ]
  stage = await setStage({ replies })
})
afterAll(async () => {
  await browser.close()
  await stage[Symbol.asyncDispose]()
})

/** The browser has no desktop: it says what it would show. Its tabs are hidden until they are shown. */
const WITHOUT_DESKTOP = `
  globalThis.isHidden = true
  Object.defineProperty(Document.prototype, 'hidden', { get: () => globalThis.isHidden })
  globalThis.setHidden = (isHidden) => {
    globalThis.isHidden = isHidden
    document.dispatchEvent(new Event('visibilitychange'))
  }
  globalThis.Notification = class extends EventTarget {
    static permission = 'default'
    static async requestPermission() { return Notification.permission = globalThis.permission ?? 'granted' }
    constructor(title, { body }) {
      super()
      noticed([title, body].join(' | '))
    }
  }
  if (localStorage.getItem('notifications') === 'on') Notification.permission = 'granted'`

type Desktop = { readonly tabs: readonly [Page, Page]; readonly notices: string[] }

async function openDesktop(): Promise<Desktop> {
  const { page } = await openTab(browser, stage.server.url)
  const notices: string[] = []
  await page.context().exposeFunction('noticed', (text: string) => void notices.push(text))
  await page.context().addInitScript(WITHOUT_DESKTOP)
  await page.goto('about:blank')
  const open = async (tab: Page, hash: string) => {
    const connected = watchConnection(tab)
    await tab.goto(`${stage.server.url}/ui/${hash}`)
    await connected()
  }
  await open(page, '#/settings')
  await turn([page], 'Notify when')
  const other = await page.context().newPage()
  await open(other, '#/')
  await other.waitForSelector('text=No agent needs you.')
  return { tabs: [page, other], notices }
}

const choiceIn = (page: Page, text: string) => page.locator('label.option', { hasText: text }).locator('input')

/** Clicks in the first tab. The others learn of it some time later: resolves when all have. */
async function turn(tabs: readonly Page[], text: string): Promise<void> {
  const [isOn] = await Promise.all(tabs.map((tab) => choiceIn(tab, text).isChecked()))
  await choiceIn(tabs[0]!, text).click()
  for (const tab of tabs) await expect.poll(() => choiceIn(tab, text).isChecked()).toBe(!isOn)
}

const goInAll = (tabs: readonly Page[], hash: string) => Promise.all(tabs.map((tab) => goTo(tab, hash)))

async function run(message: string, fields: object): Promise<string> {
  const id = await stage.create({ ...fields })
  await stage.say(id, message)
  return id
}

async function ask(title: string): Promise<string> {
  const id = await stage.create({ title, permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'decide', run: true })
  await expect.poll(async () => (await stage.server.call('GET', '/requests')).body.items.length).toBe(1)
  return id
}

test('a request and the end of a run are shown once, whatever the number of tabs, with what they are about', async () => {
  const { tabs, notices } = await openDesktop()
  const expected: string[] = []
  await run('hello', { title: 'first' })
  expected.push('first | The agent: finished')
  await expect.poll(() => notices).toEqual(expected)
  await run('fail', {})
  expected.push('fail | The agent: failed')
  await expect.poll(() => notices).toEqual(expected)
  const id = await ask('asks')
  expected.push('asks | Permission: Bash touch made')
  await expect.poll(() => notices).toEqual(expected)
  for (const tab of tabs) await expect.poll(() => tab.title()).toContain('(1)')
  await stage.server.call('DELETE', `/conversations/${id}`)
  // What a second tab says too late would be there now.
  await run('hello', { title: 'last' })
  expected.push('last | The agent: finished')
  await expect.poll(() => notices).toEqual(expected)
  await tabs[0].context().close()
})

test('two agents that end in the same way are both announced', async () => {
  const { page } = await openTab(browser, stage.server.url)
  const words: string[] = []
  await page.exposeFunction('announced', (text: string) => void words.push(text.trim()))
  await page.evaluate(`{
    const place = document.querySelector('p.unseen')
    new MutationObserver(() => announced(place.textContent)).observe(place, { characterData: true, childList: true, subtree: true })
  }`)
  for (const title of ['first', 'second']) {
    await run('hello', { title })
    const expected = Array.from({ length: title === 'first' ? 1 : 2 }, () => 'The agent: finished')
    await expect.poll(() => words).toEqual(expected)
  }
  await page.context().close()
})

test('nothing is shown of a muted conversation, and without content only that something happened', async () => {
  const { tabs, notices } = await openDesktop()
  const [page] = tabs
  const muted = await stage.create({ title: 'muted' })
  await goInAll(tabs, `#/c/${muted}/settings`)
  await turn(tabs, 'Do not notify me')
  await stage.say(muted, 'hello')
  await goInAll(tabs, '#/settings')
  await turn(tabs, 'without content')
  await run('hello', { title: 'secret' })
  await expect.poll(() => notices).toEqual(['The agent: finished | '])
  const id = await ask('secret')
  await expect.poll(() => notices).toEqual(['The agent: finished | ', 'An agent needs you | '])
  await stage.server.call('DELETE', `/conversations/${id}`)
  await page.context().close()
})

test('nothing is shown while somebody can see a tab, or after the switch was turned off in one', async () => {
  const { tabs, notices } = await openDesktop()
  const [page, other] = tabs
  const announced = async (text: string) => {
    for (const tab of tabs) await tab.waitForSelector(`.unseen:text-is("${text}")`, { state: 'attached' })
  }
  await goTo(other, '#/settings')
  await other.evaluate(`setHidden(false)`)
  await run('hello', { title: 'seen' })
  await announced('The agent: finished')
  // The hidden tab has asked whether somebody can see another one: it is answered in order.
  await page.evaluate(`navigator.locks.query().then(() => {})`)
  await other.evaluate(`setHidden(true)`)
  await run('hello', { title: 'unseen' })
  await expect.poll(() => notices).toEqual(['unseen | The agent: finished'])
  await turn(tabs, 'Notify when')
  await run('fail', { title: 'switched off' })
  await announced('The agent: failed')
  await turn(tabs, 'Notify when')
  await run('hello', { title: 'switched on' })
  await expect.poll(() => notices.at(-1)).toBe('switched on | The agent: finished')
  expect(notices).toEqual(['unseen | The agent: finished', 'switched on | The agent: finished'])
  await page.context().close()
})

test('the switch turns itself off where the browser does not allow notifications', async () => {
  const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/settings' })
  await page.context().exposeFunction('noticed', () => {})
  await page.addInitScript(`${WITHOUT_DESKTOP}; globalThis.permission = 'denied'`)
  await page.reload()
  await choiceIn(page, 'Notify when').click()
  await page.waitForSelector('.notice:has-text("does not allow notifications")')
  expect(await choiceIn(page, 'Notify when').isChecked()).toBe(false)
  expect(misdeeds).toEqual([])
  await page.context().close()
})
