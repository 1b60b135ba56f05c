/** The linter refuses what would read a text as HTML in the dashboard. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

test('no part of the dashboard can read a text as HTML, by whatever name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lint-'))
  const file = join(folder, 'src/ui/hostile.tsx')
  mkdirSync(dirname(file), { recursive: true })
  cpSync(join(ROOT, '.oxlintrc.json'), join(folder, '.oxlintrc.json'))
  cpSync(join(ROOT, 'scripts/lint'), join(folder, 'scripts/lint'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const lines = [
    'export const a = (node: Element, text: string) => void (node.innerHTML = text)',
    'export const b = (node: Element, text: string) => void (node["outerHTML"] = text)',
    'export const c = (node: Element, text: string) => node.insertAdjacentHTML("beforeend", text)',
    'export const d = (text: string) => <p innerHTML={text} />',
    'export const e = (text: string) => <p dangerouslySetInnerHTML={{ __html: text }} />',
    'export const f = (text: string) => <iframe srcdoc={text} />',
    'export const g = (text: string) => <p>{text}</p>',
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const oxlint = join(ROOT, 'node_modules/oxlint/bin/oxlint')
  const { stdout } = spawnSync(process.execPath, [oxlint, '--format', 'unix', 'src/ui'], {
    cwd: folder,
    encoding: 'utf8',
  })
  const found = [...stdout.matchAll(/hostile\.tsx:(\d+):\d+: \w+ reads a text as HTML/g)].map(([, line]) =>
    Number(line),
  )
  expect(found, stdout).toEqual([1, 2, 3, 4, 5, 6])
  rmSync(folder, { recursive: true })
})
