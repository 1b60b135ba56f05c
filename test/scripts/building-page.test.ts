/** The page of the dashboard is built by everybody who needs it, also at the same time. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('builders at the same time all have the whole page, and leave nothing else', async () => {
  const place = mkdtempSync(join(tmpdir(), 'page-'))
  const folder = join(place, 'ui')
  const builder = new URL('../../scripts/ui/build-page.ts', import.meta.url).href
  const program = `const { provideDashboard } = await import('${builder}')
    console.log((await provideDashboard('${folder}')).length > 0)`
  const build = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  await build()
  const files = readdirSync(folder).toSorted()
  // As if a source were newer.
  utimesSync(join(folder, 'index.html.br'), 0, 0)
  const builds = await Promise.all([build(), build(), build()])
  expect(builds.map(({ stdout }) => stdout)).toEqual(['true\n', 'true\n', 'true\n'])
  expect(readdirSync(folder).toSorted()).toEqual(files)
  expect(readdirSync(place).toSorted()).toEqual(['ui', 'ui-modules.json'])
  rmSync(place, { recursive: true })
})
