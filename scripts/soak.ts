/**
 * `npm run soak [-- path…]`: the randomised and repeated tests with their long settings, one file after the other. Takes
 * hours; a failure does not end it. With paths, only the files that contain one of them.
 */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
/** What asks for the long setting of a test. */
const IS_LONG = /\beffort\(|\bIS_SOAK\b/

const wanted = process.argv.slice(2)
const failed: string[] = []
for (const file of filesToSoak().filter((each) => wanted.length === 0 || wanted.some((path) => each.includes(path)))) {
  const began = performance.now()
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts/test.ts'), file], {
    cwd: ROOT,
    env: { ...process.env, SOAK: 'true' },
    stdio: 'inherit',
  })
  if (status !== 0) failed.push(file)
  console.log(`${status === 0 ? 'passed' : 'FAILED'} ${file} in ${Math.round((performance.now() - began) / 1000)} s\n`)
}
console.log(failed.length === 0 ? 'All passed.' : `${failed.length} failed:\n${failed.join('\n')}`)
process.exitCode = failed.length === 0 ? 0 : 1

/** Those that read the setting themselves, and those whose helpers do. */
function filesToSoak(): string[] {
  const all = globSync('test/**/*.ts', { cwd: ROOT }).toSorted()
  const texts = new Map(all.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]))
  const isLong = (file: string) => IS_LONG.test(texts.get(file) ?? '') && !file.endsWith('patience.ts')
  const helpers = all.filter((file) => !file.endsWith('.test.ts') && isLong(file)).map((file) => `/${basename(file)}'`)
  const usesHelper = (file: string) => helpers.some((helper) => texts.get(file)?.includes(helper))
  return all.filter((file) => file.endsWith('.test.ts') && (isLong(file) || usesHelper(file)))
}
