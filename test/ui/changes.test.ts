/** The changes of many files: the first are there before git has compared the others, and all can be read. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { openTab } from './browser.ts'
import { openBrowser } from './shared-browser.ts'

const FILES = 30
const nameOf = (file: number) => `file-${String(file).padStart(2, '0')}.txt`
const lines = (word: string) => Array.from({ length: 40 }, (_, line) => `${word} ${line}\n`).join('')

test('changes of many files are read on while somebody scrolls, and stay when they are read again', async () => {
  const browser = await openBrowser()
  const replies = [{ when: 'insert', turns: [bash(`sed -i '1i zero' ${nameOf(0)}`), { text: 'It is inserted.' }] }]
  await using stage = await setStage({ replies })
  const workdir = mkdtempSync(join(tmpdir(), 'changes-'))
  try {
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: workdir })
    git('init', '-q')
    for (let file = 0; file < FILES; file++) writeFileSync(join(workdir, nameOf(file)), lines('before'))
    git('add', '.')
    git('commit', '-qm', 'before')
    for (let file = 0; file < FILES; file++) writeFileSync(join(workdir, nameOf(file)), lines(`after ${file}`))
    const id = await stage.create({ workdir })
    const { page, misdeeds } = await openTab(browser, stage.server.url, { hash: '#/inbox' })
    const limits: number[] = []
    page.on('request', (request) => {
      const url = new URL(request.url())
      if (url.pathname.endsWith('/git/diff')) limits.push(Number(url.searchParams.get('limit')))
    })
    await page.evaluate(`location.hash = '#/c/${id}/changes'`)
    await page.locator('.diff-line').first().waitFor()
    expect(limits[0]).toBe(5)
    const last = page.locator('.diff-line', { hasText: `+after ${FILES - 1} 39` })
    await expect
      .poll(async () => {
        await page.evaluate(`document.querySelector('main .scroller').scrollBy(0, 1e6)`)
        return await last.count()
      })
      .toBe(1)
    await stage.say(id, 'insert')
    await expect.poll(() => limits.at(-1)).toBe(FILES)
    await expect.poll(() => last.count()).toBe(1)
    expect(misdeeds).toEqual([])
  } finally {
    await browser.close()
    rmSync(workdir, { recursive: true })
  }
})
