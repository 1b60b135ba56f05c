/**
 * Takes a picture of each screen and state of the dashboard, at three widths, dark and light, into a temporary directory:
 * `node scripts/screens.ts [NAME…]` takes those whose names contain one of the words.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { setStage } from '../test/support/agent.ts'
import { startReceiver } from '../test/support/receiver.ts'
import { goTo, openBrowser, openTab } from '../test/ui/browser.ts'
import { fillStage, SCREEN_SCRIPT } from './ui/screen-stage.ts'
import type { StageIds } from './ui/screen-stage.ts'

const WIDTHS = [360, 1280, 1920] as const
const LOOKS = ['light', 'dark'] as const
/** A picture is taken when nothing has moved for that long, milliseconds. */
const STILL_MS = 300

type Screen = {
  readonly name: string
  readonly hash: string
  /** What makes the state, once the screen is shown. */
  readonly act?: (page: Page) => Promise<unknown>
}

/** Requests of the page that never end, fail, or find nobody. */
const hang = (pattern: string) => async (page: Page) => {
  await page.route(pattern, () => {})
  await page.reload()
}
const fail = (pattern: string) => async (page: Page) => {
  const body = { error: 'storage_failed', message: 'The disk is full. Free some space, and try again.' }
  await page.route(pattern, (route) => route.fulfill({ status: 507, json: body }))
  await page.reload()
}
const answerEmpty = (pattern: string) => async (page: Page) => {
  await page.route(pattern, (route) => route.fulfill({ json: { items: [], count: 0, next_page_id: null } }))
  await page.reload()
}
const click = (selector: string) => (page: Page) => page.click(selector)
const press = (key: string) => (page: Page) => page.keyboard.press(key)
const open = async (page: Page) => {
  await page.evaluate(`document.querySelectorAll('.tool [aria-expanded=false]').forEach((line) => line.click())`)
}

const screensOf = (ids: StageIds): Screen[] => [
  { name: 'inbox', hash: '#/' },
  { name: 'inbox-empty', hash: '#/', act: answerEmpty('**/requests?*') },
  { name: 'inbox-loading', hash: '#/', act: hang('**/requests?*') },
  { name: 'conversations', hash: '#/conversations' },
  { name: 'conversations-selected', hash: '#/conversations', act: click('.selectable input >> nth=1') },
  { name: 'conversations-found', hash: '#/conversations', act: (page) => page.fill('[data-search]', 'total') },
  { name: 'conversations-none', hash: '#/conversations', act: (page) => page.fill('[data-search]', 'zzz') },
  { name: 'conversations-failed', hash: '#/conversations', act: fail('**/conversations/summaries?*') },
  { name: 'conversations-loading', hash: '#/conversations', act: hang('**/conversations/summaries?*') },
  { name: 'chat', hash: `#/c/${ids.done}` },
  { name: 'chat-open', hash: `#/c/${ids.done}`, act: open },
  { name: 'chat-plan', hash: `#/c/${ids.done}`, act: click('.plan summary') },
  { name: 'chat-running', hash: `#/c/${ids.running}` },
  { name: 'chat-waiting', hash: `#/c/${ids.permission}` },
  { name: 'chat-failed', hash: `#/c/${ids.failed}` },
  { name: 'chat-empty', hash: `#/c/${ids.empty}` },
  { name: 'chat-long', hash: `#/c/${ids.long}` },
  { name: 'chat-deleted', hash: '#/c/0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1' },
  { name: 'changes', hash: `#/c/${ids.done}/changes` },
  { name: 'changes-comment', hash: `#/c/${ids.done}/changes`, act: click('button.line-number >> nth=2') },
  { name: 'changes-unknown', hash: `#/c/${ids.empty}/changes` },
  { name: 'files', hash: `#/c/${ids.done}/files` },
  { name: 'file', hash: `#/c/${ids.done}/files`, act: click('.files button:has-text("total.sh")') },
  { name: 'files-empty', hash: `#/c/${ids.empty}/files` },
  { name: 'commands', hash: `#/c/${ids.done}/commands` },
  { name: 'timeline', hash: `#/c/${ids.done}/timeline` },
  {
    name: 'timeline-range',
    hash: `#/c/${ids.done}/timeline`,
    act: (page) => page.locator('input[type=range]').first().fill('60'),
  },
  { name: 'settings', hash: `#/c/${ids.done}/settings` },
  { name: 'new', hash: '#/new' },
  { name: 'costs', hash: '#/costs' },
  { name: 'costs-table', hash: '#/costs', act: click('summary') },
  { name: 'costs-empty', hash: '#/costs', act: (page) => page.selectOption('select >> nth=0', '1') },
  { name: 'webhooks', hash: '#/webhooks' },
  { name: 'webhooks-empty', hash: '#/webhooks', act: answerEmpty('**/callbacks?*') },
  { name: 'server', hash: '#/server' },
  { name: 'preferences', hash: '#/settings' },
  { name: 'palette', hash: '#/conversations', act: press('Control+k') },
  { name: 'keys', hash: '#/conversations', act: press('?') },
  { name: 'notice', hash: '#/server', act: click('text=Pause all agents') },
]

const words = process.argv.slice(2)
const isWanted = (name: string) => words.length === 0 || words.some((word) => name.includes(word))

const folder = mkdtempSync(join(tmpdir(), 'screens-'))
const browser = await openBrowser()
const receiver = await startReceiver(() => 500)
const stage = await setStage(SCREEN_SCRIPT, { env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' } })
try {
  const ids = await fillStage(stage, receiver.url)
  const { page: first } = await openTab(browser, stage.server.url)
  for (const screen of screensOf(ids).filter(({ name }) => isWanted(name))) await take(first.context(), screen)
  await takeOthers(first)
} finally {
  await browser.close()
  await receiver[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
}
process.stdout.write(`${folder}\n`)

async function take(context: BrowserContext, { name, hash, act }: Screen): Promise<void> {
  const page = await context.newPage()
  await page.goto(`${stage.server.url}/ui/${hash}`)
  await page.waitForSelector('main')
  await settle(page)
  try {
    await act?.(page)
    await shoot(page, name)
  } catch (error) {
    process.stderr.write(`${name}: ${String(error)}\n`)
  }
  await page.close()
}

/** Takes the pictures for which the login, the rights or the server are others. */
async function takeOthers(page: Page): Promise<void> {
  const { body } = await stage.server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const { page: reader } = await openTab(browser, stage.server.url, { key: body.key })
  if (isWanted('reader')) await shoot(reader, 'reader')
  if (isWanted('offline')) {
    await goTo(page, '#/')
    await stage.server.stop('SIGKILL')
    await page.waitForSelector('.lost')
    await shoot(page, 'offline')
    await stage.server.restart()
  }
  if (!isWanted('login')) return
  await goTo(reader, '#/settings')
  await reader.click('text=Log out')
  await reader.waitForSelector('[name=password]')
  await shoot(reader, 'login')
  await reader.fill('[name=password]', 'wrong')
  await reader.click('button[type=submit]')
  await reader.waitForSelector('[role=alert]')
  await shoot(reader, 'login-refused')
}

async function shoot(page: Page, name: string): Promise<void> {
  for (const colorScheme of LOOKS) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: width === 1920 ? 1080 : 800 })
      await settle(page)
      if (!name.includes('loading')) await page.waitForSelector('.loading', { state: 'detached' })
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) })
    }
  }
}

/** Resolves when nothing has been drawn for a moment. */
async function settle(page: Page): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    let timer = setTimeout(resolve, ${STILL_MS})
    const observer = new MutationObserver(() => {
      clearTimeout(timer)
      timer = setTimeout(resolve, ${STILL_MS})
    })
    observer.observe(document, { subtree: true, childList: true })
    setTimeout(resolve, ${10 * STILL_MS})
  })`)
}
