/** Makes `docs/dashboard.png`, the picture of the dashboard: a scripted agent at work in a real browser. */
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { bash, setStage } from '../test/support/agent.ts'
import { goTo, openBrowser, openTab } from '../test/ui/browser.ts'

const TOTAL = '#!/usr/bin/env bash\nawk -F, \'NR > 1 { sum += $2 } END { print sum }\' "$1"\n'
const PLAN = ['Read the file', 'Write total.sh', 'Test it'].map((title, index) => ({
  title,
  status: index === 2 ? 'in_progress' : 'done',
}))

const turns = [
  {
    reasoning: 'First I look at the file.',
    calls: [{ name: 'TaskTracker', arguments: { command: 'plan', task_list: PLAN } }],
  },
  bash("printf 'name,amount\\napples,12\\npears,30\\n' > example.csv && head example.csv"),
  {
    text: 'The second column is the amount, and the first line is a header. I write the script:',
    calls: [
      { name: 'FileEditor', arguments: { command: 'create', path: 'total.sh', file_text: TOTAL } },
      { name: 'Bash', arguments: { command: 'bash total.sh example.csv' } },
    ],
  },
  bash('bash total.sh missing.csv'),
  { text: '`total.sh` adds up the **second column**: 42 for the example. A file that is missing is an error.' },
]
const decision = [bash('git push origin main')]
const stage = await setStage({ replies: [{ when: 'csv', turns }, { turns: decision }] }, {})
const browser = await openBrowser()
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
