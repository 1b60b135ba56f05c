import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** In the order in which a reader pastes them: the second page continues in the shell of the first. */
const TOUR = ['README.md', 'docs/tour.md']

test('the commands of the README and of the tour run as they are written', async () => {
  const blocks = (await Promise.all(TOUR.map(shellBlocks))).map((found) => found.join('\n'))
  const home = await mkdtemp(join(tmpdir(), 'agent-server-tour-'))
  try {
    const { code, output } = await runScript(blocks.join('\n'), home)
    expect(output).toMatch(/"title":"totals"/)
    expect(output, 'the run that was waited for').toMatch(/"status":"idle","result":\{[^\n]*"stop_reason":"completed"/)
    expect(output, 'the sum that the script printed').toMatch(/total: 505/)
    expect(output).toMatch(/event: AssistantDelta\n/)
    expect(output, 'both messages').toMatch(/\{"count":2\}/)
    expect(output).toMatch(/event: deleted\n/)
    expect(code, output).toBe(0)
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
})

test('both pages have commands, and no other page has blocks marked `sh`, which are the ones that are run', async () => {
  const pages = ['README.md', ...(await Array.fromAsync(glob('docs/*.md', { cwd: ROOT })))]
  const blocks = await Promise.all(pages.map(shellBlocks))
  expect(pages.filter((_, index) => blocks[index]!.length > 0).sort()).toEqual(TOUR)
})

async function shellBlocks(page: string): Promise<string[]> {
  const text = await readFile(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1]!)
}

/** For a tour that fails half way: its servers would hold their ports. */
const LEAVE_NOTHING = `trap 'for job in $(jobs -p); do kill -- -$job || true; done 2> /dev/null' EXIT`

/** As a person would paste it: one bash at a terminal, in the project's directory, with job control so that `%1` means something. */
async function runScript(script: string, home: string): Promise<{ code: number; output: string }> {
  const file = join(home, 'tour.sh')
  await writeFile(file, `${LEAVE_NOTHING}\n${script}`)
  const child = spawn(
    'script',
    ['--quiet', '--return', '--command', `bash -m -e -u -o pipefail ${file}`, '/dev/null'],
    {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], HOME: home, TERM: 'dumb' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text.replaceAll('\r', '')))
  const [code] = (await once(child, 'close')) as [number]
  return { code, output }
}
