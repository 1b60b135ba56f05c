/** Makes `docs/dashboard.png`, the picture of the dashboard: a scripted agent at work in a real browser. */
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { bash, setStage } from '../test/support/agent.ts'
import { WRITES_TOTAL } from './ui/screen-stage.ts'
import { goTo, launchBrowser, openTab } from '../test/ui/browser.ts'

const turns = [
  ...WRITES_TOTAL,
  bash('bash total.sh missing.csv'),
  { text: '`total.sh` adds up the **second column**: 42 for the example. A file that is missing is an error.' },
]
const decision = [bash('git push origin main')]
const stage = await setStage({ replies: [{ when: 'csv', turns }, { turns: decision }] }, {})
const browser = await launchBrowser()
try {
  await take(browser)
} finally {
  await browser.close()
  await stage[Symbol.asyncDispose]()
}

async function take(opened: Browser): Promise<void> {
  const id = await stage.create({ title: 'Totals of CSV files' })
  await stage.say(id, 'Write total.sh, which adds up a CSV file.')
  const waiting = await stage.create({ title: 'Release', permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${waiting}/messages`, { message: 'Publish it.', run: true })
  const { page } = await openTab(opened, stage.server.url)
  await page.waitForSelector('[data-request]')
  await goTo(page, `#/c/${id}`)
  await page.waitForSelector('.end')
  await page.mouse.move(0, 0)
  await page.screenshot({ path: join(import.meta.dirname, '../docs/dashboard.png') })
}
