import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import { runAsNobody } from '../support/unprivileged.ts'
import { some } from '../support/some.ts'

test('a process that cannot be started for lack of descriptors is refused with an error, and the server lives on', async () => {
  const child = join(import.meta.dirname, 'children/without-descriptors.ts')
  const limited = ['-c', 'ulimit -S -n 64; exec "$0" "$@"', process.execPath, child]
  expect((await promisify(execFile)('bash', limited)).stdout.trim()).toBe('EMFILE')
})

/** The limit does not hold for root. */
test.runIf(process.getuid?.() === 0)(
  'a process that cannot be started because there are too many is refused with what to do, its search does not seem empty, and its request is answered 503',
  async () => {
    const refusal = (file: string) => `${file} could not be started: the limit of processes is reached (EAGAIN).`
    expect(await runAsNobody(join(import.meta.dirname, 'children/without-processes.ts'))).toEqual([
      expect.stringContaining(refusal('/bin/true')),
      expect.stringContaining(refusal('/bin/sh')),
      expect.stringContaining(refusal('/bin/true')),
      503,
      expect.stringMatching(/"error":"unavailable","message":".*the limit of processes is reached/),
    ])
  },
)

/** Command lines end with an error; trials of what the host can do only say whether it works. */
const MAY_SPAWN =
  /^(cli|sdk|client)\/|^lib\/start-process\.ts$|^sandbox\/find-launcher\.ts$|^limits\/cgroup-factory\.ts$/

test.each([
  ['', ''],
  [':/usr/bin', '/usr/bin'],
  ['/bin:.:../x::bin:/usr/bin:', '/bin:/usr/bin'],
])('programs of the current directory are not found: %j as the search path is %j', (given, kept) => {
  for (const made of [HostEnvironment.from({ PATH: given }), HostEnvironment.ofPerson({ PATH: given })])
    expect(made.path).toBe(kept || '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin')
})

test('the server starts processes in this way only', async () => {
  const root = join(import.meta.dirname, '../../src')
  const names = (await readdir(root, { recursive: true })).filter(
    (name) => name.endsWith('.ts') && !MAY_SPAWN.test(name),
  )
  const texts = await Promise.all(
    some('sources', names).map(async (name) => [name, await readFile(join(root, name), 'utf8')] as const),
  )
  const spawning = texts.filter(([, text]) =>
    /import \{[^}]*\b(spawn|execFile)\b[^}]*\} from 'node:child_process'/.test(text),
  )
  expect(spawning.map(([name]) => name)).toEqual([])
})
