/** What clients and agents learn about files while descriptors are short: everything, or that it is not possible now. */
import { mkdir, writeFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { codeOf } from '../../src/lib/error-code.ts'
import { parseJailPath } from '../../src/files/jail/jail-path.ts'
import { listFiles } from '../../src/files/trees/list-files.ts'
import type { Jail } from '../../src/files/jail/path-jail.ts'
import { openJail } from '../../src/files/jail/path-jail.ts'
import { searchFiles } from '../../src/files/search/search-files.ts'
import { archiveDirectory } from '../../src/files/trees/archive-directory.ts'
import { setJail } from './jail-fixture.ts'

const ROOT = parseJailPath('')
const signal = new AbortController().signal
const search = { ripgrep: undefined, redact: (text: string) => text, signal }

const WORK: readonly [string, (jail: Jail) => Promise<unknown>][] = [
  ['a listing', (jail) => listFiles(jail, ROOT, { recursive: true, limit: 100 })],
  // It owns its jail.
  ['an archive', async (jail) => gunzipSync(await buffer(await archiveDirectory(jail, ROOT))).toString()],
  [
    'a search in files',
    (jail) => searchFiles(jail, ROOT, { content: 'needle', path: '', ignore_case: false, limit: 100 }, search),
  ],
  [
    'a search for names',
    (jail) => searchFiles(jail, ROOT, { q: 'e', path: '', ignore_case: false, limit: 100 }, search),
  ],
]

type Attempt = { readonly answer: unknown; readonly operations: number }

/** What is reported if the operation with this number finds no descriptor. The jail closes all that it has opened. */
async function attempt(workdir: string, work: (jail: Jail) => Promise<unknown>, failing: number): Promise<Attempt> {
  let operations = 0
  const io = async <T>(operation: () => Promise<T>): Promise<T> => {
    if (operations++ !== failing) return await operation()
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE', syscall: 'open' })
  }
  try {
    await using jail = await openJail({ workdir, rules: { forbidden: [] }, io, signal })
    return { answer: await work(jail), operations }
  } catch (error) {
    return { answer: codeOf(error), operations }
  }
}

test.each(WORK)('%s is complete, or fails: whatever lacks a descriptor is not left out', async (_, work) => {
  await using bench = await setJail()
  await mkdir(bench.inside('one', 'two'), { recursive: true })
  for (const path of ['top', 'one/middle', 'one/two/deep']) await writeFile(bench.inside(path), 'needle\n')
  const whole = await attempt(bench.workdir, work, Infinity)
  for (let failing = 0; failing < whole.operations; failing++) {
    const { answer } = await attempt(bench.workdir, work, failing)
    expect(['EMFILE', whole.answer], `operation ${failing}`).toContainEqual(answer)
  }
})
