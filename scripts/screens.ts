/**
 * Takes a picture of each screen and state of the dashboard, at three widths, dark and light, into a temporary directory:
 * `node scripts/screens.ts [NAME…]` takes those whose names contain one of the words.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { OauthServer } from '../test/mcp/children/oauth-server.ts'
import { setStage } from '../test/support/agent.ts'
import { startReceiver } from '../test/support/receiver.ts'
import { goTo, launchBrowser, openTab } from '../test/ui/browser.ts'
import { germanScreensOf, readerScreensOf, screensOf } from './ui/screen-list.ts'
import type { Screen } from './ui/screen-list.ts'
import { fillStage, SCREEN_SCRIPT } from './ui/screen-stage.ts'
import type { StageIds } from './ui/screen-stage.ts'

const WIDTHS = [360, 1280, 1920] as const
const LOOKS = ['light', 'dark'] as const
/** A picture is taken when nothing has moved for that long, milliseconds. */
const STILL_MS = 300
/** A state that cannot be made is reported, and the others are taken. */
const PATIENCE_MS = 30_000

const words = process.argv.slice(2)
const isWanted = (name: string) => words.length === 0 || words.some((word) => name.includes(word))

const folder = mkdtempSync(join(tmpdir(), 'screens-'))
const browser = await launchBrowser()
const receiver = await startReceiver(() => 500)
const oauth = await OauthServer.start()
const stage = await setStage(SCREEN_SCRIPT, {
  env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1', OPENHANDS_MCP_ALLOW: '127.0.0.1' },
})
try {
  const ids = await fillStage(stage, { receiverUrl: receiver.url, mcpUrl: oauth.mcpUrl('plain') })
  const { page: first } = await openTab(browser, stage.server.url)
  await takeAll(first.context(), screensOf(ids))
  await takeOthers(first, ids)
} finally {
  await browser.close()
  await receiver[Symbol.asyncDispose]()
  await oauth[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
}
process.stdout.write(`${folder}\n`)

async function takeAll(context: BrowserContext, screens: readonly Screen[]): Promise<void> {
  for (const screen of screens.filter(({ name }) => isWanted(name))) await take(context, screen)
}

async function take(context: BrowserContext, { name, hash, act }: Screen): Promise<void> {
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  // What a small screen scrolls to is decided when it opens.
  await page.setViewportSize({ width: WIDTHS[0], height: 800 })
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

/** Takes the pictures for which the login, the language, the rights or the server are others. */
async function takeOthers(page: Page, ids: StageIds): Promise<void> {
  const { page: german } = await openTab(browser, stage.server.url)
  await german.evaluate(`localStorage.setItem('language', 'de')`)
  await takeAll(german.context(), germanScreensOf(ids))
  const { body } = await stage.server.call('POST', '/keys', { name: 'reader', scopes: ['read'] })
  const { page: reader } = await openTab(browser, stage.server.url, { key: body.key })
  await takeAll(reader.context(), readerScreensOf(ids))
  if (isWanted('offline')) await takeOffline(page, ids)
  if (isWanted('login')) await takeLogin(reader)
}

async function takeOffline(page: Page, { done }: StageIds): Promise<void> {
  await goTo(page, '#/')
  await page.waitForSelector('main h1')
  await stage.server.stop('SIGKILL')
  await page.waitForSelector('.lost')
  await shoot(page, 'offline')
  await stage.server.restart()
  await page.waitForSelector('.lost', { state: 'detached' })
  await goTo(page, `#/c/${done}`)
  await page.waitForSelector('.end')
  await stage.server.stop('SIGKILL')
  await page.waitForSelector('.lost')
  await shoot(page, 'offline-chat')
  await stage.server.restart()
}

async function takeLogin(page: Page): Promise<void> {
  await goTo(page, '#/settings')
  await page.click('text=Log out')
  await page.waitForSelector('[name=password]')
  await shoot(page, 'login')
  await page.fill('[name=password]', 'wrong')
  await page.click('button[type=submit]')
  await page.waitForSelector('[role=alert]')
  await shoot(page, 'login-refused')
}

async function shoot(page: Page, name: string): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: width === 1920 ? 1080 : 800 })
    for (const colorScheme of LOOKS) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await settle(page)
      if (!name.includes('loading')) await page.waitForSelector('.loading', { state: 'detached' })
      // A card that has just moved cannot be decided for a moment.
      await page.waitForSelector('[data-key=a]:disabled', { state: 'detached' })
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
